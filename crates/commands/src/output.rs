//! Output files and folders, checked before the work begins.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use heedful::exchange::origin::copy_origin;
use heedful::store::durable::write_bytes;
use heedful::store::output::{OutputFile, check_folder};
use heedful::system::is_same_file;
use heedful::tasks::folder::{MODEL, MODEL_FILES, read_model_file};

/// Refuses `command x >> x`, on systems that have names for standard input and output: the command would read
/// its own output without end.
pub(crate) fn check_standard_output(inputs: &[&Path]) -> Result<()> {
    let output = Path::new("/dev/stdout");
    // A terminal may be both input and output.
    if !output.is_file() {
        return Ok(());
    }
    let mut read = inputs.iter().copied().chain([Path::new("/dev/stdin")]);
    if let Some(input) = read.find(|input| is_same_file(output, input)) {
        let input = input.display();
        bail!("standard output is the same file as {input}, which is read: write to another file");
    }
    Ok(())
}

/// Copies the files that accompany a model: the recipe of its run, which gives the lengths of its training
/// texts, its origin and its licence.
pub(crate) fn copy_accompanying_files(from: &Path, to: &Path) -> Result<()> {
    const RECIPE: &str = "recipe.toml";
    if !is_same_file(from, to)
        && let Some(recipe) = read_model_file(from, RECIPE)?
    {
        write_bytes(&to.join(RECIPE), &recipe)?;
    }
    Ok(copy_origin(from, to)?)
}

/// `--force`, the same for every command that writes files.
#[derive(clap::Args)]
pub(crate) struct Force {
    /// Overwrite a file that the command reads or a model, or write into a folder that is not empty
    #[arg(long, help_heading = "Output")]
    force: bool,
}

impl Force {
    pub(crate) fn is_given(&self) -> bool {
        self.force
    }

    /// Opens a file to write. `inputs` are the files that the command reads; a folder among
    /// them is that of a model.
    pub(crate) fn open(&self, path: &Path, inputs: &[&Path]) -> Result<OutputFile> {
        // The file that standard input was redirected from, on systems that have a name for it.
        let mut read: Vec<PathBuf> = vec![PathBuf::from("/dev/stdin")];
        for input in inputs {
            read.push(input.to_path_buf());
            read.extend(MODEL_FILES.iter().map(|name| input.join(name)));
        }
        if self.force || !path.is_file() {
            read.clear();
        }
        Ok(OutputFile::open(path, &read.iter().map(PathBuf::as_path).collect::<Vec<_>>())?)
    }

    /// As [`Force::open`], for an optional output: without a path, standard output is checked.
    pub(crate) fn open_if_named(&self, path: Option<&Path>, inputs: &[&Path]) -> Result<Option<OutputFile>> {
        if path.is_none() && !self.force {
            check_standard_output(inputs)?;
        }
        path.map(|path| self.open(path, inputs)).transpose()
    }

    /// Checks that files can be written into a folder and that they would not overwrite a model. `inputs` are
    /// folders that the command reads.
    pub(crate) fn check_folder(&self, folder: &Path, inputs: &[&Path]) -> Result<()> {
        let name = folder.display();
        if let Some(input) = inputs.iter().find(|input| !self.force && is_same_file(folder, input)) {
            let input = input.display();
            bail!(
                "{name} is the same folder as {input}, which is read: name another, or add --force to replace its model"
            );
        }
        self.check_free_of(&["recipe.toml", "config.json", MODEL], folder)
    }

    /// As [`Force::check_folder`], for files with names that other programs use too: the folder must be
    /// empty.
    pub(crate) fn check_empty_folder(&self, folder: &Path, inputs: &[&Path]) -> Result<()> {
        self.check_folder(folder, inputs)?;
        let mut files = fs::read_dir(folder).into_iter().flatten().flatten();
        if let Some(file) = files.next().filter(|_| !self.force) {
            let (name, file) = (folder.display(), file.file_name().to_string_lossy().into_owned());
            bail!("{name} is not empty ({file}): name another folder, or add --force to write into it");
        }
        Ok(())
    }

    /// As [`Force::check_folder`], for a vocabulary: one that `heedful vocab` wrote may be replaced.
    pub(crate) fn check_vocabulary_folder(&self, folder: &Path) -> Result<()> {
        self.check_free_of(&["config.json", MODEL], folder)
    }

    fn check_free_of(&self, names: &[&str], folder: &Path) -> Result<()> {
        check_folder(folder)?;
        if let Some(file) = names.iter().find(|file| !self.force && folder.join(file).exists()) {
            let name = folder.display();
            bail!(
                "{name} already holds a model or a run ({file}): name another folder, or add --force to write into it"
            );
        }
        Ok(())
    }
}
