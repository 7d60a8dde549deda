//! Names of functions from what the compiler prints for an item in them.

/// `Grid::step` from `crate::module::Grid<_>::step::Item`: the path below the module, without
/// generics, traits and closures, of the function that holds the item.
///
/// The compiler prints an item of a function in an `impl` as `m::Grid<_>::step::Item`,
/// `<m::Grid<_> as m::Trait>::step::Item`, or, where the `impl` stands in another module than the
/// type, `m::inner::<impl m::Grid<u8>>::step::Item`.
pub(crate) fn path_below_module(item: &str, module: &str) -> String {
    // `module_path!()` keeps the mark of raw identifiers, the path of an item does not.
    let module = module.replace("r#", "");
    let mut names = Vec::new();
    for segment in below_module(item, &module) {
        match segment {
            "" | "{{closure}}" | "{closure#0}" => {}
            impl_segment if impl_segment.starts_with('<') => names.push(type_of_impl(impl_segment, &module)),
            generic => names.push(without_generics(generic).to_owned()),
        }
    }
    names.pop();
    names.join("::")
}

/// The segments of `path` behind those of the module. A module inside a function has the function in
/// its items' paths, but not in its own.
fn below_module<'a>(path: &'a str, module: &str) -> Vec<&'a str> {
    let segments = split_path(path);
    let mut modules = module.split("::").peekable();
    let end_of_module = segments.iter().position(|segment| {
        modules.next_if_eq(segment);
        modules.peek().is_none()
    });
    segments[end_of_module.map_or(0, |at| at + 1)..].to_vec()
}

/// `Grid` from `<m::Grid<_> as m::Trait>` and from `<impl m::Grid<u8>>`.
fn type_of_impl(segment: &str, module: &str) -> String {
    let inner = segment.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(segment);
    let inner = inner.strip_prefix("impl ").unwrap_or(inner);
    // `impl Trait for Type` and `Type as Trait` both name the type; the trait is left out.
    let at_top = |word: &str| find_outside_brackets(inner, word);
    let ty = match (at_top(" for "), at_top(" as ")) {
        (Some(at), _) => &inner[at + " for ".len()..],
        (None, Some(at)) => &inner[..at],
        (None, None) => inner,
    };
    short_type(ty, module)
}

/// A type as one would write it where its module and generics are known: `(u8, &Grid)` from
/// `(u8, &m::Grid<_>)`.
fn short_type(ty: &str, module: &str) -> String {
    let is_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let mut short = String::new();
    let mut rest = ty;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|letter| !is_path(letter)).unwrap_or(rest.len());
        let (path, behind) = rest.split_at(end);
        if path.is_empty() {
            short.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        short += &below_module_or_last(path, module);
        rest = if behind.starts_with('<') { &behind[end_of_angles(behind)..] } else { behind };
    }
    short
}

/// A path without the module in front, or the last of its segments where it is from another one.
fn below_module_or_last(path: &str, module: &str) -> String {
    match path.strip_prefix(module).and_then(|rest| rest.strip_prefix("::")) {
        Some(below) => below.to_owned(),
        None => path.rsplit("::").next().unwrap_or(path).to_owned(),
    }
}

/// Length of `<..>` at the beginning of the text.
fn end_of_angles(text: &str) -> usize {
    // Behind the first one, which opens.
    let closed = Letters::of(text).skip(1).find(|(_, depth)| *depth == 0);
    closed.map_or(text.len(), |(at, _)| at)
}

fn without_generics(segment: &str) -> &str {
    match segment.find('<') {
        Some(at) if at > 0 => &segment[..at],
        _ => segment,
    }
}

/// The parts between `::` that stand outside brackets.
fn split_path(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = path;
    while let Some(at) = find_outside_brackets(rest, "::") {
        parts.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    parts.push(rest);
    parts
}

fn find_outside_brackets(text: &str, word: &str) -> Option<usize> {
    Letters::of(text).find(|&(at, depth)| depth == 0 && text[at..].starts_with(word)).map(|(at, _)| at)
}

/// The places of letters in a type, and of its end, with how many brackets are open in front of them. Constant
/// arguments may have brackets that are none: `Token<'<'>`, `Grid<{ N < 8 }>`.
struct Letters<'a> {
    text: &'a str,
    at: Option<usize>,
    depth: u32,
    braces: u32,
    before: char,
}

impl Letters<'_> {
    fn of(text: &str) -> Letters<'_> {
        Letters { text, at: Some(0), depth: 0, braces: 0, before: ' ' }
    }

    /// Length of the letter, or of a character or text in quotes, that `rest` begins with.
    fn step(rest: &str, first: char) -> usize {
        let end_of = |quote: char| {
            let mut is_escaped = false;
            let closes = |letter: char| {
                let is_end = letter == quote && !is_escaped;
                is_escaped = letter == '\\' && !is_escaped;
                is_end
            };
            rest[1..].find(closes).map(|at| at + 2)
        };
        let is_character = || {
            let mut next = rest.chars().skip(1);
            next.next() == Some('\\') || next.next() == Some('\'')
        };
        let quoted = match first {
            '"' => end_of('"'),
            // It may also be of a lifetime.
            '\'' if is_character() => end_of('\''),
            _ => None,
        };
        quoted.unwrap_or(first.len_utf8())
    }
}

impl Iterator for Letters<'_> {
    type Item = (usize, u32);

    fn next(&mut self) -> Option<(usize, u32)> {
        let at = self.at?;
        let found = (at, self.depth + self.braces);
        let rest = &self.text[at..];
        self.at = rest.chars().next().map(|letter| {
            match letter {
                '{' => self.braces += 1,
                '}' => self.braces = self.braces.saturating_sub(1),
                // In an expression they mean something else.
                _ if self.braces > 0 => {}
                '<' | '(' | '[' => self.depth += 1,
                // The arrow of a function type closes nothing.
                '>' if self.before == '-' => {}
                '>' | ')' | ']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.before = letter;
            at + Letters::step(rest, letter)
        });
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::path_below_module;

    #[test]
    fn names_are_paths_below_the_module() {
        let table = [
            ("app::step::Item", "app", "step"),
            ("app::solver::step::Item", "app::solver", "step"),
            ("app::Grid<_>::step::Item", "app", "Grid::step"),
            ("<app::Grid<_> as app::Step>::step::Item", "app", "Grid::step"),
            ("<app::Grid<T> as core::fmt::Display>::fmt::Item", "app", "Grid::fmt"),
            ("app::m::inner::<impl app::m::Grid<u8>>::special::Item", "app::m::inner", "Grid::special"),
            ("app::Step::whole::Item", "app", "Step::whole"),
            ("app::outer::nested::Item", "app", "outer::nested"),
            ("app::outer::{{closure}}::Item", "app", "outer"),
            ("app::outer::{{closure}}::inside::Item", "app", "outer::inside"),
            ("app::outer::inner::step::Item", "app::inner", "step"),
            ("<app::outer::Local as app::Tr>::step::Item", "app", "outer::Local::step"),
            ("app::mod::step::Item", "app::r#mod", "step"),
            ("<fn(u8) -> app::A as app::Tr>::call::Item", "app", "fn(u8) -> A::call"),
            ("<&app::Grid<fn() -> u8> as app::Tr>::call::Item", "app", "&Grid::call"),
            ("<(u8, app::Grid<_>) as app::Tr>::call::Item", "app", "(u8, Grid)::call"),
            ("<[T] as app::Tr>::call::Item", "app", "[T]::call"),
            ("app::Kernel<{ N < 8 }>::run::Item", "app", "Kernel::run"),
            ("app::Token<'<'>::open::Item", "app", "Token::open"),
            ("app::Token<'>'>::close::Item", "app", "Token::close"),
            (r"app::Token<'\''>::quote::Item", "app", "Token::quote"),
            (r"<app::Token<'\\'> as app::Tr<'{'>>::slash::Item", "app", "Token::slash"),
            (r#"<app::Token<{ len("}<\"") }, '"'> as app::Tr>::text::Item"#, "app", "Token::text"),
            ("<app::View<'a> as app::Tr>::get::Item", "app", "View::get"),
            ("app::outer::{closure#0}::inside::Item", "app", "outer::inside"),
            ("<dyn app::Tr + core::marker::Send>::call::Item", "app", "dyn Tr + Send::call"),
        ];
        for (item, module, name) in table {
            assert_eq!(path_below_module(item, module), name, "{item}");
        }
    }
}
