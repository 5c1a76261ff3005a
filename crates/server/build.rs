//! Lists the files of the page, so that none is forgotten: every file in `web/` becomes a
//! part of the program.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=web");
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("web");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.retain(|path| path.is_file());
    files.sort();
    let entry = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("({name:?}, include_bytes!({:?})),\n", path.to_string_lossy())
    };
    let list = format!("[\n{}]\n", files.iter().map(entry).collect::<String>());
    let out = Path::new(&env::var("OUT_DIR").map_err(io::Error::other)?).join("assets.rs");
    fs::write(out, format!("&{list}"))
}
