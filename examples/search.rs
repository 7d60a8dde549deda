//! Searches every file below a folder by a regular expression, on all cores.
//!
//! ```text
//! cargo scope run --release --example search -- 'unsafe \{' ~/some/tree       see where the time goes
//! cargo run --release --example search -- --lines 'TODO' .                    just search
//! ```
//!
//! Recording needs no line in this file besides the regions: `cargo scope run` names a folder in
//! the variable `SCOPE_OUTPUT`, and that turns it on.
//!
//! The folder is listed first, on the main thread; then a rayon pool takes file after file. In the
//! profile each worker of the pool is a lane of its own, and the regions show whether the time goes
//! to reading files or to matching:
//!
//! ```text
//!   main           |main                                            |
//!                  |  |list_files    |search_files   |print_result| |
//!   search 0                         |search_file|search_file|..
//!                                    | |read|check|find_matches|
//!   search 1                         |search_file|search_file|..
//! ```

use std::error::Error;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use examples::Calls;
use ignore::WalkBuilder;
use rayon::ThreadPool;
use rayon::prelude::*;
use regex::{Regex, RegexBuilder};
use scope_runtime::{region, scope};

const HELP: &str = "\
Usage: search [OPTIONS] PATTERN FOLDER
Prints for every file below FOLDER how many matches of the regular expression PATTERN it has.
Hidden files and what .gitignore names are left out.
  --lines       print the lines too
  --threads N   threads [one per core]
  --counts      print how often each region was entered";

#[scope]
fn main() -> Result<(), Box<dyn Error>> {
    let Some(options) = Options::parse()? else {
        println!("{HELP}");
        return Ok(());
    };
    let mut calls = Calls::default();
    calls.count("main");

    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .thread_name(|index| format!("search {index}"))
        .build()?;
    let files = list_files(&options.folder, &mut calls)?;
    let searched = search_files(&pool, &files, &options.pattern, &mut calls);
    print_result(&files, &searched, &options, &mut calls)?;

    if options.counts {
        let sum = searched.into_iter().map(|file| file.calls).fold(calls, Calls::plus);
        print!("{sum}");
    }
    Ok(())
}

/// What the user asked for.
struct Options {
    pattern: Regex,
    folder: PathBuf,
    lines: bool,
    /// 0 lets rayon choose.
    threads: usize,
    counts: bool,
}

impl Options {
    /// Reads the command line; `None` when it asks for help.
    fn parse() -> Result<Option<Options>, Box<dyn Error>> {
        use lexopt::prelude::*;

        let (mut pattern, mut folder) = (None, None);
        let (mut lines, mut threads, mut counts) = (false, 0, false);
        let mut words = lexopt::Parser::from_env();
        while let Some(word) = words.next()? {
            match word {
                Long("lines") => lines = true,
                Long("threads") => threads = words.value()?.parse()?,
                Long("counts") => counts = true,
                Short('h') | Long("help") => return Ok(None),
                Value(text) if pattern.is_none() => pattern = Some(text.parse_with(line_pattern)?),
                Value(path) if folder.is_none() => folder = Some(PathBuf::from(path)),
                _ => return Err(word.unexpected().into()),
            }
        }
        let (Some(pattern), Some(folder)) = (pattern, folder) else {
            return Err("a PATTERN and a FOLDER are needed, see --help".into());
        };
        Ok(Some(Options { pattern, folder, lines, threads, counts }))
    }
}

/// Compiles a pattern in which `^` and `$` stand for the start and the end of a line.
fn line_pattern(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).multi_line(true).build()
}

/// All files below `folder`, in alphabetical order within each folder.
///
/// What cannot be listed is named on stderr and left out, unless it is `folder` itself.
#[scope]
fn list_files(folder: &Path, calls: &mut Calls) -> Result<Vec<PathBuf>, String> {
    calls.count("list_files");
    fs::metadata(folder).map_err(|error| format!("failed to list `{}`: {error}", folder.display()))?;
    let mut files = Vec::new();
    for entry in WalkBuilder::new(folder).sort_by_file_name(Ord::cmp).build() {
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                files.push(entry.into_path());
            }
            Ok(_) => {}
            Err(error) => eprintln!("left out: {error}"),
        }
    }
    Ok(files)
}

/// What was found in one file.
#[derive(Default)]
struct Searched {
    /// Bytes read.
    size_bytes: usize,
    /// Number of matches.
    matches: usize,
    /// 1-based number and text of each line on which a match begins.
    lines: Vec<(usize, String)>,
    /// Why the file was not searched.
    left_out: Option<String>,
    calls: Calls,
}

/// Searches all files on the pool; the results come in the order of `files`.
#[scope]
fn search_files(pool: &ThreadPool, files: &[PathBuf], pattern: &Regex, calls: &mut Calls) -> Vec<Searched> {
    calls.count("search_files");
    pool.install(|| files.par_iter().map(|file| search_file(file, pattern)).collect())
}

/// Searches one file.
#[scope]
fn search_file(file: &Path, pattern: &Regex) -> Searched {
    let mut searched = Searched::default();
    searched.calls.count("search_file");
    let bytes = match region!("read", {
        searched.calls.count("read");
        fs::read(file)
    }) {
        Ok(bytes) => bytes,
        Err(error) => return Searched { left_out: Some(error.to_string()), ..searched },
    };
    searched.size_bytes = bytes.len();
    let text = {
        region!("check UTF-8");
        searched.calls.count("check UTF-8");
        String::from_utf8(bytes)
    };
    match text {
        Ok(text) => find_matches(&text, pattern, &mut searched),
        Err(_) => searched.left_out = Some("it is not UTF-8 text".to_owned()),
    }
    searched
}

/// Counts the matches in `text` and keeps the lines on which they begin.
#[scope]
fn find_matches(text: &str, pattern: &Regex, searched: &mut Searched) {
    searched.calls.count("find_matches");
    let (mut line_number, mut seen) = (1, 0);
    for found in pattern.find_iter(text) {
        let start = found.start();
        line_number += text[seen..start].matches('\n').count();
        seen = start;
        searched.matches += 1;
        if searched.lines.last().is_none_or(|(last, _)| *last != line_number) {
            let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
            let line = text[line_start..].lines().next().unwrap_or_default();
            searched.lines.push((line_number, line.to_owned()));
        }
    }
}

/// Prints the files that have matches, the lines if wanted, and a sum. Files that were left out are
/// named on stderr.
#[scope]
fn print_result(
    files: &[PathBuf],
    searched: &[Searched],
    options: &Options,
    calls: &mut Calls,
) -> io::Result<()> {
    calls.count("print_result");
    let mut out = BufWriter::new(io::stdout().lock());
    for (path, found) in files.iter().zip(searched) {
        if let Some(reason) = &found.left_out {
            eprintln!("left out: {}: {reason}", path.display());
        }
        if found.matches == 0 {
            continue;
        }
        writeln!(out, "{:>7} {}", found.matches, path.display())?;
        if options.lines {
            for (number, line) in &found.lines {
                writeln!(out, "        {number}: {line}")?;
            }
        }
    }
    let matches: usize = searched.iter().map(|found| found.matches).sum();
    let size_bytes: usize = searched.iter().map(|found| found.size_bytes).sum();
    writeln!(out, "{matches} matches in {} files of {:.1} MB", files.len(), size_bytes as f64 / 1e6)?;
    out.flush()
}
