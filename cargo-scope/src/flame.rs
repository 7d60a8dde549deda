//! Flame graphs as SVG and as folded text, merged by call path.
//!
//! Input is a tree of call paths with their totals; the width of a frame is its inclusive time,
//! that is its own time and its children's.

mod frames;
mod svg;

use std::io::{self, Write};

use self::frames::Frames;
use crate::names::folded;
use crate::paths::NamedPaths;

/// How a flame graph is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct FlameOptions {
    /// Title; `None` takes the label of the run and its rank.
    pub title: Option<String>,
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
pub fn write_svg(paths: &NamedPaths, options: &FlameOptions, out: &mut impl Write) -> io::Result<()> {
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
pub fn write_folded(paths: &NamedPaths, out: &mut impl Write) -> io::Result<()> {
    let frames = Frames::new(paths, 0.0);
    for line in frames.stacks(paths, |node| folded(paths.name(paths.paths.nodes()[node].region))) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
