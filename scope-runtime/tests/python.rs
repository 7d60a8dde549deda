//! The `.prof` file against Python itself: what `marshal` reads, writes and what `pstats` prints.
//!
//! `SCOPE_TEST_PYTHON` names the interpreter; without it these tests are left out and say so.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use scope_runtime::call_stack::{Mode, RegionCalls, build_call_arrays};
use scope_runtime::marshal::{self, Value, Writer};
use scope_runtime::pstats::{
    PstatsOptions, Restriction, SortKey, Stats, build_pstats_dict, load_prof, write_prof,
};

/// Runs a program with the bytes on its stdin; `None` when no Python is to be used.
fn python(program: &str, input: &[u8]) -> Option<Vec<u8>> {
    let Some(python) = std::env::var_os("SCOPE_TEST_PYTHON") else {
        // Not by `println`, which a test that passes does not show.
        let _ = writeln!(std::io::stderr(), "left out: SCOPE_TEST_PYTHON names no Python");
        return None;
    };
    let mut command = Command::new(python);
    let pipes = command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.spawn().expect("a Python that starts");
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(output.stdout)
}

fn integers() -> Vec<i64> {
    let edges =
        [(1 << 31) - 1, 1 << 31, -(1 << 31), -(1 << 31) - 1, 1 << 62, i64::MIN, i64::MAX, 0, -1, 1 << 15];
    edges.to_vec()
}

fn names() -> Vec<String> {
    [0, 1, 255, 256]
        .map(|len| "n".repeat(len))
        .into_iter()
        .chain(["æøå 测试 🚲".to_owned(), "a\n\t\0".to_owned()])
        .collect()
}

#[test]
fn python_reads_what_is_written() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    writer.begin_tuple((integers().len() + names().len() + 2) as u8).unwrap();
    integers().iter().for_each(|int| writer.int(*int).unwrap());
    names().iter().for_each(|name| writer.string(name).unwrap());
    [0.1, f64::MAX].iter().for_each(|float| writer.float(*float).unwrap());
    let program = "import sys, marshal; print(ascii(marshal.loads(sys.stdin.buffer.read())))";
    let Some(printed) = python(program, &bytes) else { return };
    let mut expected: Vec<String> = integers().iter().map(i64::to_string).collect();
    let quoted = |name: &String| {
        let escaped = name.chars().map(|letter| match letter as u32 {
            0x0a => "\\n".to_owned(),
            0x09 => "\\t".to_owned(),
            0x20..0x7f => letter.to_string(),
            code @ 0..0x100 => format!("\\x{code:02x}"),
            code @ 0x100..0x1_0000 => format!("\\u{code:04x}"),
            code => format!("\\U{code:08x}"),
        });
        format!("'{}'", escaped.collect::<String>())
    };
    expected.extend(names().iter().map(quoted));
    expected.extend(["0.1".to_owned(), "1.7976931348623157e+308".to_owned()]);
    assert_eq!(String::from_utf8(printed).unwrap().trim(), format!("({})", expected.join(", ")));
}

#[test]
fn what_python_writes_is_read() {
    let program = "
import sys, marshal
ints = [2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**62, -2**63, 2**63 - 1, 0, -1, 2**15]
names = ['n' * n for n in (0, 1, 255, 256)] + ['æøå 测试 🚲', 'a\\n\\t\\0']
key = ('file', 1, names[4])
version = int(sys.stdin.buffer.read())
sys.stdout.buffer.write(marshal.dumps([*ints, *names, {key: (key, names[4], 0.1, None, True)}, key], version))
";
    for version in ["0", "1", "2", "3", "4"] {
        let Some(bytes) = python(program, version.as_bytes()) else { return };
        let Value::Sequence(values) = marshal::read(&bytes).unwrap() else { panic!("a list") };
        let text = |name: &String| Value::Str(name.as_str().into());
        let mut expected: Vec<Value> = integers().into_iter().map(Value::Int).collect();
        expected.extend(names().iter().map(text));
        let key = Value::Sequence([Value::Str("file".into()), Value::Int(1), text(&names()[4])].into());
        let members = [key.clone(), text(&names()[4]), Value::Float(0.1), Value::None, Value::Bool(true)];
        expected.push(Value::Dict([(key.clone(), Value::Sequence(members.into()))].into()));
        expected.push(key);
        assert_eq!(*values, *expected, "version {version}");
    }
}

/// main [0 ...................................... 1000000]
/// walk   [10 ......... 500000]      [600000,600000]
/// walk     [20 ... 300000]
fn profile() -> scope_runtime::pstats::Pstats {
    let regions = [
        RegionCalls {
            source_file: Some("src/main.rs"),
            source_line: Some(7),
            ..RegionCalls::new("main", &[0], &[1_000_000])
        },
        RegionCalls::new("<walk>", &[10, 20, 600_000], &[500_000, 300_000, 600_000]),
        RegionCalls {
            source_file: Some("src/λ.rs"),
            source_line: Some(70),
            ..RegionCalls::new("leaf", &[30], &[40])
        },
    ];
    let calls = build_call_arrays(&regions, Mode::Default).unwrap();
    build_pstats_dict(&calls, Some("<run>"), false, &PstatsOptions::default())
}

#[test]
fn tables_are_those_of_pstats() {
    let profile = profile();
    let mut bytes = Vec::new();
    write_prof(&profile, &mut bytes).unwrap();
    let program = "
import io, sys, marshal, pstats
class Profile:
    def create_stats(self): self.stats = marshal.loads(data)
data = sys.stdin.buffer.read()
out = io.StringIO()
for sort in (('cumulative',), ('calls', 'name'), ('nfl',), ('stdname',), ('pcalls', 'time')):
    stats = pstats.Stats(Profile(), stream=out).sort_stats(*sort)
    stats.print_stats()
    stats.print_stats(2, 'a')
    stats.print_callers(0.5)
    stats.print_callees()
stats.add(Profile())
stats.print_stats()
sys.stdout.buffer.write(out.getvalue().encode())
";
    let Some(printed) = python(program, &bytes) else { return };
    let mut stats = Stats::from(profile.clone());
    let mut ours = Vec::new();
    let sorts: [&[SortKey]; 5] = [
        &[SortKey::Inclusive],
        &[SortKey::Calls, SortKey::Name],
        &[SortKey::NameFileLine],
        &[SortKey::Standard],
        &[SortKey::PrimitiveCalls, SortKey::SelfTime],
    ];
    for sort in sorts {
        stats.sort(sort);
        stats.print_stats(&mut ours, &[]).unwrap();
        let few = [Restriction::Count(2), Restriction::Contains("a".to_owned())];
        stats.print_stats(&mut ours, &few).unwrap();
        stats.print_callers(&mut ours, &[Restriction::Fraction(0.5)]).unwrap();
        stats.print_callees(&mut ours, &[]).unwrap();
    }
    stats.add(&profile);
    stats.print_stats(&mut ours, &[]).unwrap();
    assert_eq!(String::from_utf8(ours).unwrap(), String::from_utf8(printed).unwrap());
}

#[test]
fn a_file_of_cprofile_is_read() {
    let path: PathBuf = std::env::temp_dir().join(format!("scope-{}.prof", std::process::id()));
    let program = "
import cProfile, pstats, sys
path = sys.stdin.read()
profile = cProfile.Profile()
profile.runcall(lambda: [str(i).zfill(3) for i in range(9)] + sorted(map(repr, 'abc')))
profile.dump_stats(path)
stats = pstats.Stats(path).stats
for (file, line, name), (cc, nc, tt, ct, callers) in stats.items():
    print(file, line, name, cc, nc, tt, ct, len(callers), sep='|')
";
    let Some(printed) = python(program, path.to_str().unwrap().as_bytes()) else { return };
    let profile = load_prof(std::fs::File::open(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let printed = String::from_utf8(printed).unwrap();
    assert_eq!(printed.lines().count(), profile.len());
    for (line, entry) in printed.lines().zip(profile.entries()) {
        let fields: Vec<&str> = line.split('|').collect();
        assert_eq!(fields[..3], [&*entry.key.file, &entry.key.line.to_string(), &*entry.key.name]);
        assert_eq!(fields[3..5], [entry.cc.to_string(), entry.nc.to_string()]);
        assert_eq!(fields[5].parse(), Ok(entry.tt_s));
        assert_eq!(fields[6].parse(), Ok(entry.ct_s));
        assert_eq!(fields[7], entry.callers.len().to_string());
    }
}
