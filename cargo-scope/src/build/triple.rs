//! The platform a build was for, as cargo's configuration names it.

use std::path::{Path, PathBuf};

use cargo_metadata::Metadata;

use super::{CargoOptions, Program, Task};

/// The triple that was built for; `None` when it is that of the host.
///
/// `--target` says it. Else `build.target` of the configuration may, which cannot be asked for; but
/// then the programs lie in `<target directory>/<triple>/<folder of the profile>`, and without it in
/// `<target directory>/<folder of the profile>`.
pub(super) fn of_build(
    options: &CargoOptions,
    task: Task<'_>,
    metadata: &Metadata,
    target_directory: &Path,
    programs: &[Program],
) -> Option<String> {
    if let Some(given) = &options.target {
        // A file describes the platform whose name it has.
        let name = Path::new(given).file_name().unwrap_or(given).to_string_lossy();
        let name = name.strip_suffix(".json").unwrap_or(&name).to_string();
        return (name != "host-tuple").then_some(name);
    }
    let folder = match task.profile_name(options) {
        "dev" | "test" => "debug",
        "bench" => "release",
        name => name,
    };
    let build_directory = metadata.build_directory.as_ref().map(|folder| PathBuf::from(folder.as_str()));
    let inside = [Some(target_directory.to_path_buf()), build_directory].into_iter().flatten();
    let program = &programs.first()?.executable;
    let path = inside.filter_map(|folder| program.strip_prefix(folder).ok().map(Path::to_path_buf)).next()?;
    let mut names = path.iter();
    let first = names.next()?.to_str()?;
    (first != folder && names.next()? == folder).then(|| first.to_string())
}
