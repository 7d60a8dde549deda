//! The picture: inferno draws frames that are called by numbers, and the names, numbers and
//! labels are put in afterwards.
//!
//! inferno takes folded text, in which names cannot hold `;`, end in a number, begin with `#`
//! or be empty, and its tooltips have one number. A frame called `n17` has none of these
//! problems:
//!
//! ```text
//! <title>n17 (1,200 ns, 12.00%)</title> .. <text ..>n17</text>
//! <title>step (1.200 us, 12%, self 300 ns, 4 calls)</title> .. <text ..>step</text>
//! ```

use std::borrow::Cow;
use std::fmt::Write;
use std::io;

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{self, Options, TextTruncateDirection};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::FlameOptions;
use super::frames::{Frames, MAX_LEVELS};
use crate::names::visible;
use crate::paths::NamedPaths;
use crate::units::{count, counted, duration, share};

/// Width of a picture whose width nobody chose, before it fits itself to the window.
const DEFAULT_WIDTH: u32 = 1200;
/// A label in less than this would not hold a letter.
const LEAST_WIDTH: u32 = 100;
const FONT_SIZE: usize = 12;
/// Width of a letter, as a part of the font size.
const LETTER_WIDTH: f64 = 0.59;
/// The frame that stands for roots too narrow to be drawn. Its name is no region's, since a
/// single backslash never stays in one.
const NARROW: &str = "narrow";
const NARROW_NAME: &str = "\\(narrow paths)";

/// Draws `frames`, which have some time.
pub(super) fn draw(paths: &NamedPaths, frames: &Frames, options: &FlameOptions) -> io::Result<String> {
    let mut stacks: Vec<String> = frames.stacks(paths, |node| format!("n{node}").into()).collect();
    if frames.narrow_roots_ns > 0 {
        stacks.push(format!("{NARROW} {}", frames.narrow_roots_ns));
    }
    let mut palette = palette(paths, frames);
    let mut drawing = Options::default();
    drawing.title = title(options).into_owned();
    drawing.subtitle = left_out(frames, options);
    drawing.image_width = layout_width(options);
    drawing.no_javascript = options.no_javascript;
    drawing.min_width = 0.0;
    drawing.name_type = "Region:".into();
    drawing.count_name = "ns".into();
    drawing.font_size = FONT_SIZE;
    drawing.font_width = LETTER_WIDTH;
    drawing.palette_map = Some(&mut palette);
    drawing.text_truncate_direction = TextTruncateDirection::Right;
    drawing.bgcolors = Some(BackgroundColor::Flat(Color { r: 255, g: 255, b: 255 }));
    // As a "flame chart" the stacks are taken as they come, from the last to the first. Sorted as
    // text, `a b` would come between `a` and `a;x`, and `a` would be drawn in two pieces.
    drawing.flame_chart = true;
    let mut drawn = Vec::new();
    flamegraph::from_lines(&mut drawing, stacks.iter().rev().map(String::as_str), &mut drawn)?;
    let drawn =
        String::from_utf8(drawn).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let frames_at = drawn.find("<svg id=\"frames\"").unwrap_or(drawn.len());
    let (head, body) = drawn.split_at(frames_at);
    let mut picture = finish_head(head, options);
    put_names(body, paths, frames, options, &mut picture);
    Ok(picture)
}

/// A picture that says that there is nothing in it, and why.
pub(super) fn draw_nothing(paths: &NamedPaths, options: &FlameOptions) -> String {
    let calls: u64 = paths.paths.nodes().iter().map(|node| node.calls).sum();
    let why = match calls {
        0 => "no calls were recorded".into(),
        1 => "the one call took less than a tick of the clock".into(),
        calls => format!("all {} calls took less than a tick of the clock", count(calls)),
    };
    let width = options.width.unwrap_or(DEFAULT_WIDTH).max(LEAST_WIDTH);
    let size = if options.fixed_width { format!("width=\"{width}\" height=\"80\" ") } else { String::new() };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg version=\"1.1\" {size}viewBox=\"0 0 {width} 80\" xmlns=\"http://www.w3.org/2000/svg\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#f8f8f8\"/>\n\
         <g font-family=\"monospace\" text-anchor=\"middle\">\n\
         <text id=\"title\" x=\"50%\" y=\"24\" font-size=\"17\">{}</text>\n\
         <text x=\"50%\" y=\"52\" font-size=\"12\">Nothing to show: {why}.</text>\n\
         </g>\n</svg>\n",
        escape_xml(&title(options))
    )
}

fn title(options: &FlameOptions) -> Cow<'_, str> {
    options.title.as_deref().map_or("Flame graph".into(), visible)
}

/// The width for which inferno lays out; with `None` its script fits the picture to the window.
fn layout_width(options: &FlameOptions) -> Option<usize> {
    let fits_itself = !options.fixed_width && !options.no_javascript && options.width.is_none();
    (!fits_itself).then(|| options.width.unwrap_or(DEFAULT_WIDTH).max(LEAST_WIDTH) as usize)
}

fn left_out(frames: &Frames, options: &FlameOptions) -> Option<String> {
    let mut parts = Vec::new();
    if frames.levels_left_out > 0 {
        let levels = counted(frames.levels_left_out.into(), "level", "levels");
        parts.push(format!("{levels} below the first {MAX_LEVELS} left out"));
    }
    if frames.narrow > 0 {
        let narrow = match options.call_paths {
            true => counted(frames.narrow, "call path", "call paths"),
            false => counted(frames.narrow, "region", "regions"),
        };
        parts.push(format!("{narrow} below {}% left out", options.threshold_percent));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Colours by name, so that a region looks the same on all paths, ranks and runs.
fn palette(paths: &NamedPaths, frames: &Frames) -> PaletteMap {
    let mut palette = PaletteMap::default();
    for node in frames.in_order(paths) {
        palette.insert(format!("n{node}"), color(paths.name(paths.paths.nodes()[node].region)));
    }
    palette.insert(NARROW, Color { r: 200, g: 200, b: 200 });
    palette.insert("", Color { r: 225, g: 225, b: 220 });
    palette
}

/// A warm colour, light enough for black letters.
fn color(name: &str) -> Color {
    // FNV-1a: the same on every machine and in every version.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let part = |shift: u32, range: u64| ((hash >> shift) % range) as u8;
    Color { r: 215 + part(40, 40), g: 90 + part(20, 130), b: 40 + part(8, 50) }
}

/// The part before the frames, without the document type (which would have an XML parser go
/// online), and as `options` wants the size and the script.
fn finish_head(head: &str, options: &FlameOptions) -> String {
    let mut head = head.to_string();
    cut(&mut head, "<!DOCTYPE", ">");
    if options.no_javascript {
        cut(&mut head, "<script", "</script>");
        cut(&mut head, " onload=\"", "\"");
        for id in ["details", "unzoom", "search", "matched"] {
            cut(&mut head, &format!("<text id=\"{id}\""), "</text>");
        }
    }
    if !options.fixed_width && layout_width(options).is_some() {
        // Without a size of its own it takes the window's, and the view box scales it; at the top,
        // where one looks first.
        cut(&mut head, " width=\"", "\"");
        cut(&mut head, " height=\"", "\"");
        head = head.replacen(" viewBox=", " preserveAspectRatio=\"xMidYMin\" viewBox=", 1);
    }
    head
}

/// Removes the first piece of `text` that begins with `from` and ends with `to`.
fn cut(text: &mut String, from: &str, to: &str) {
    let Some(start) = text.find(from) else { return };
    let inside = start + from.len();
    if let Some(length) = text[inside..].find(to) {
        text.replace_range(start..inside + length + to.len(), "");
    }
}

/// Copies inferno's frames to `picture`, with a name, numbers and a label for each.
fn put_names(
    mut body: &str,
    paths: &NamedPaths,
    frames: &Frames,
    options: &FlameOptions,
    picture: &mut String,
) {
    let width = layout_width(options).unwrap_or(DEFAULT_WIDTH as usize) as f64 - 20.0;
    while let Some((before, title, rest)) = element(body, "<title>", "</title>") {
        let frame = Frame::of(title.split(' ').next().unwrap_or(""), paths, frames, options);
        let _ = write!(picture, "{before}<title>{}</title>", escape_xml(&frame.tooltip(frames.total_ns)));
        body = rest;
        if let Some((before, label, rest)) = element(body, "<text", "</text>") {
            let attributes = label.split_once('>').map_or("", |(attributes, _)| attributes);
            let columns =
                frame.width_ns as f64 / frames.total_ns as f64 * width / (FONT_SIZE as f64 * LETTER_WIDTH);
            let text = fit(&frame.name, columns as usize);
            let _ = write!(picture, "{before}<text{attributes}>{}</text>", escape_xml(&text));
            body = rest;
        }
    }
    picture.push_str(body);
}

/// What is before, inside and after the next element.
fn element<'a>(text: &'a str, open: &str, close: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (before, rest) = text.split_once(open)?;
    let (inside, after) = rest.split_once(close)?;
    Some((before, inside, after))
}

/// What a frame says about itself.
struct Frame<'a> {
    name: Cow<'a, str>,
    width_ns: u64,
    /// `, self 300 ns, 4 calls`; empty where that has no meaning.
    numbers: String,
}

impl<'a> Frame<'a> {
    /// The frame that inferno knows as `token`.
    fn of(token: &str, paths: &'a NamedPaths, frames: &Frames, options: &'a FlameOptions) -> Frame<'a> {
        let node = token.strip_prefix('n').and_then(|number| number.parse::<usize>().ok());
        let Some(node) = node else {
            let (name, width_ns) = match token {
                NARROW => (NARROW_NAME.into(), frames.narrow_roots_ns),
                _ => (options.root.as_deref().map_or("all".into(), visible), frames.total_ns),
            };
            return Frame { name, width_ns, numbers: String::new() };
        };
        let totals = &paths.paths.nodes()[node];
        let calls = counted(totals.calls, "call", "calls");
        let mut numbers = format!(", self {}, {calls}", duration(totals.self_ns));
        if totals.open > 0 {
            let _ = write!(numbers, ", {} cut at the end", count(totals.open));
        }
        Frame { name: visible(paths.name(totals.region)), width_ns: frames.width_ns[node], numbers }
    }

    fn tooltip(&self, total_ns: u64) -> String {
        // The script takes the last pair of brackets off for the label.
        let (width_ns, total_ns) = (self.width_ns as i64, total_ns as i64);
        format!("{} ({}, {}{})", self.name, duration(width_ns), share(width_ns, total_ns), self.numbers)
    }
}

/// `name`, or as much of it as fits into `columns` with two dots; nothing where that is no letter.
fn fit(name: &str, columns: usize) -> Cow<'_, str> {
    if name.width() <= columns {
        return name.into();
    }
    let mut left = columns.saturating_sub(2);
    let kept = name.chars().take_while(|c| {
        let fits = c.width().unwrap_or(0) <= left;
        left = left.saturating_sub(c.width().unwrap_or(0));
        fits
    });
    let kept: String = kept.collect();
    if kept.is_empty() { "".into() } else { (kept + "..").into() }
}

fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
