//! Text of regions, from the source files where these are found and are what was compiled.
//!
//! A region knows file and line as the compiler did: relative to the root of the workspace, or absolute
//! for a package elsewhere. A file that changed since the program began is left alone, and so is a line
//! at which no function or block is.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Most bytes of the text of one region; the rest is left out.
const LONGEST_TEXT: usize = 16 << 10;
/// A larger file was made by a program, for nobody to read.
const LARGEST_FILE: u64 = 2 << 20;

/// Source files by their names, each read at most once.
pub(super) struct Sources<'a> {
    roots: &'a [PathBuf],
    /// What changed later is not what ran.
    latest: SystemTime,
    files: HashMap<String, Option<SourceFile>>,
}

struct SourceFile {
    text: String,
    parsed: syn::File,
}

impl<'a> Sources<'a> {
    /// Looks in these folders, in their order, for files from before `began_ns` after the Unix epoch.
    pub(super) fn new(roots: &'a [PathBuf], began_ns: i64) -> Sources<'a> {
        let began = Duration::from_nanos(u64::try_from(began_ns).unwrap_or(0));
        Sources { roots, latest: UNIX_EPOCH + began, files: HashMap::new() }
    }

    /// The function with its name in this line, or what a `region!` there measures; `None` where it
    /// cannot be told.
    pub(super) fn text(&mut self, file: &str, line: i64) -> Option<String> {
        let line = usize::try_from(line).ok().filter(|&line| line > 0)?;
        if !self.files.contains_key(file) {
            let found = self.roots.iter().find_map(|root| self.read(&root.join(file)));
            self.files.insert(file.to_string(), found);
        }
        let source = self.files.get(file)?.as_ref()?;
        let mut search = Search { line, function: None, region: None, block: None };
        search.visit_file(&source.parsed);
        let (first, last) = search.found()?;
        let lines = source.text.split_inclusive('\n').skip(first - 1).take(last + 1 - first);
        Some(bounded(lines))
    }

    fn read(&self, path: &Path) -> Option<SourceFile> {
        let about = fs::metadata(path).ok()?;
        if !about.is_file() || about.len() > LARGEST_FILE || about.modified().ok()? > self.latest {
            return None;
        }
        let text = fs::read_to_string(path).ok()?;
        let parsed = syn::parse_file(&text).ok()?;
        Some(SourceFile { text, parsed })
    }
}

/// Whole lines, as many as there is room for.
fn bounded<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for line in lines {
        if text.len() + line.len() > LONGEST_TEXT {
            text.push_str("...[truncated]\n");
            break;
        }
        text.push_str(line);
    }
    text
}

/// First and last line.
type Lines = (usize, usize);

/// Looks for what a region in `line` measures.
struct Search {
    line: usize,
    function: Option<Lines>,
    region: Option<Lines>,
    /// The innermost block around the line.
    block: Option<Lines>,
}

impl Search {
    /// A block with a region ends it: from the line on it is what is measured.
    fn found(&self) -> Option<Lines> {
        let rest = self.block.map(|(_, last)| (self.line, last.saturating_sub(1).max(self.line)));
        self.function.or(self.region).or(rest)
    }

    fn function(&mut self, whole: Span, name: Span) {
        if name.start().line == self.line {
            self.function = Some(lines(whole));
        }
    }

    fn surrounds(&self, (first, last): Lines) -> bool {
        (first..=last).contains(&self.line)
    }
}

fn lines(span: Span) -> Lines {
    (span.start().line, span.end().line)
}

impl<'a> Visit<'a> for Search {
    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.function(function.span(), function.sig.ident.span());
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.function(function.span(), function.sig.ident.span());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        self.function(function.span(), function.sig.ident.span());
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_block(&mut self, block: &'a syn::Block) {
        let lines = lines(block.span());
        if self.surrounds(lines) {
            self.block = Some(lines);
        }
        visit::visit_block(self, block);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        let is_region = call.path.segments.last().is_some_and(|name| name.ident == "region");
        let has_block = call.tokens.clone().into_iter().any(|token| match token {
            proc_macro2::TokenTree::Group(group) => group.delimiter() == proc_macro2::Delimiter::Brace,
            _ => false,
        });
        let lines = lines(call.span());
        if is_region && has_block && lines.0 == self.line {
            self.region = Some(lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
/// Adds up.
#[scope]
fn sum(values: &[f64]) -> f64 {
    region!(\"first\");
    let half = region!(\"second\", {
        values.len() / 2
    });
    values.iter().sum()
}

impl Grid {
    fn step(&mut self) { fn inner() {} }
}
";

    fn text(line: i64) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::write(folder.path().join("src/lib.rs"), SOURCE).unwrap();
        let roots = [folder.path().join("nowhere"), folder.path().to_path_buf()];
        Sources::new(&roots, i64::MAX).text("src/lib.rs", line)
    }

    #[test]
    fn a_function_is_found_by_the_line_of_its_name() {
        let function = text(3).unwrap();
        assert!(function.starts_with("/// Adds up.\n") && function.ends_with(".sum()\n}\n"), "{function}");
        assert_eq!(text(12).unwrap(), "    fn step(&mut self) { fn inner() {} }\n");
    }

    #[test]
    fn a_region_is_its_block_or_the_rest_of_the_one_around_it() {
        let rest = text(4).unwrap();
        assert!(rest.starts_with("    region!(\"first\");\n") && rest.ends_with(".sum()\n"), "{rest}");
        let block = text(5).unwrap();
        assert!(block.starts_with("    let half") && block.ends_with("    });\n"), "{block}");
    }

    #[test]
    fn what_cannot_be_told_is_left_out() {
        assert_eq!((text(0), text(10), text(99)), (None, None, None));
        assert_eq!(Sources::new(&[], i64::MAX).text("src/lib.rs", 3), None);
    }

    #[test]
    fn a_file_that_changed_later_is_not_what_ran() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("main.rs"), SOURCE).unwrap();
        let roots = [folder.path().to_path_buf()];
        assert_eq!(Sources::new(&roots, 1_000_000_000).text("main.rs", 3), None);
        assert!(Sources::new(&roots, i64::MAX).text("main.rs", 3).is_some());
    }

    #[test]
    fn long_texts_are_cut_at_a_line() {
        let line = "x".repeat(1000) + "\n";
        let text = bounded(std::iter::repeat_n(line.as_str(), 20));
        assert!(text.len() < LONGEST_TEXT + 20 && text.ends_with("x\n...[truncated]\n"));
    }
}
