//! Flame graphs as SVG and as folded text, merged by call path.
//!
//! Input is a tree of call paths with their totals; the width of a frame is its inclusive time,
//! that is its own time and its children's.

mod frames;
mod svg;

use std::borrow::Cow;
use std::io::{self, Write};

use self::frames::Frames;
use crate::names::folded;
use crate::paths::NamedPaths;

/// How a flame graph is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct FlameOptions {
    /// Title; `None` takes the label of the run and its rank.
    pub title: Option<String>,
    /// Name of the frame below all others; `None` takes `all`.
    pub root: Option<String>,
    /// One frame per call path; else one per region, as wide as its own time.
    pub call_paths: bool,
    /// Width in pixels for which the picture is laid out.
    pub width: Option<u32>,
    /// Keeps the picture at its width; else it fits the window.
    pub fixed_width: bool,
    /// Frames with less than this percentage of the whole time are left out.
    pub threshold_percent: f64,
    /// Leaves out the script that searches and zooms.
    pub no_javascript: bool,
}

impl Default for FlameOptions {
    fn default() -> FlameOptions {
        FlameOptions {
            title: None,
            root: None,
            call_paths: true,
            width: None,
            fixed_width: false,
            threshold_percent: 0.1,
            no_javascript: false,
        }
    }
}

/// Writes the flame graph of `paths`; without any time in them, a picture that says so.
///
/// At most 500 levels are drawn; the time of deeper ones is inside the last, and the
/// picture says how many were left out.
///
/// # Errors
/// When `out` fails.
///
/// # Examples
/// ```
/// use cargo_scope::flame::{FlameOptions, write_svg};
/// use cargo_scope::paths::NamedPaths;
/// use scope_runtime::profile::RegionId;
///
/// let mut tree = NamedPaths { names: vec!["main".into()], ..NamedPaths::default() };
/// let main = tree.paths.step(None, RegionId(0));
/// tree.paths.add_call(main, 1_000, 1_000, false);
/// let mut svg = Vec::new();
/// write_svg(&tree, &FlameOptions::default(), &mut svg)?;
/// assert!(String::from_utf8(svg)?.contains("main"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_svg(paths: &NamedPaths, options: &FlameOptions, out: &mut impl Write) -> io::Result<()> {
    let paths = if options.call_paths { Cow::Borrowed(paths) } else { Cow::Owned(paths.by_region()) };
    let paths = &*paths;
    let frames = Frames::new(paths, options.threshold_percent);
    let picture = if frames.total_ns == 0 {
        svg::draw_nothing(paths, options)
    } else {
        svg::draw(paths, &frames, options)?
    };
    out.write_all(picture.as_bytes())
}

/// Writes one line per call path with own time, `main;step 1200`, in ns; at most 500 levels, as
/// in the picture, with the time of deeper ones at the last.
///
/// # Errors
/// When `out` fails.
///
/// # Examples
/// ```
/// use cargo_scope::flame::write_folded;
/// use cargo_scope::paths::NamedPaths;
/// use scope_runtime::profile::RegionId;
///
/// let mut tree = NamedPaths { names: vec!["main".into(), "step".into()], ..NamedPaths::default() };
/// let main = tree.paths.step(None, RegionId(0));
/// let step = tree.paths.step(Some(main), RegionId(1));
/// tree.paths.add_call(step, 30, 30, false);
/// tree.paths.add_call(main, 100, 70, false);
/// let mut text = Vec::new();
/// write_folded(&tree, &mut text)?;
/// assert_eq!(String::from_utf8(text)?, "main 70\nmain;step 30\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_folded(paths: &NamedPaths, out: &mut impl Write) -> io::Result<()> {
    let frames = Frames::new(paths, 0.0);
    for line in frames.stacks(paths, |node| folded(paths.name(paths.paths.nodes()[node].region))) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
