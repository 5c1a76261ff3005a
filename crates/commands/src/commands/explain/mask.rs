//! `--mask [KIND=]FILE`: a custom attention mask.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use heedful::explain::MaskRows;
use heedful::layers::{AttentionMask, AttentionRole};
use heedful::tasks::Task;

/// The file of a mask, and the kind of attention that it applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MaskArgument {
    role: Option<AttentionRole>,
    file: PathBuf,
}

/// Maximum bytes of a mask file: enough for the longest text that can be explained.
const MAX_BYTES: u64 = 64 << 20;

impl FromStr for MaskArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<MaskArgument, String> {
        let role = |kind: &str| match kind {
            "encoder" | "enc" => Some(AttentionRole::EncoderSelf),
            "decoder" | "dec" => Some(AttentionRole::DecoderSelf),
            "cross" => Some(AttentionRole::Cross),
            "pooling" | "pool" => Some(AttentionRole::Pooling),
            _ => None,
        };
        let named = text.split_once('=').and_then(|(kind, file)| Some((role(kind)?, file)));
        let (role, file) = named.map_or((None, text), |(role, file)| (Some(role), file));
        if file.is_empty() {
            return Err("names no file".to_owned());
        }
        Ok(MaskArgument { role, file: file.into() })
    }
}

impl MaskArgument {
    /// Reads the file; `task` determines the default kind of attention.
    pub(super) fn read(&self, task: Task) -> Result<AttentionMask> {
        let name = self.file.display();
        if let Some((kind, _)) = self.file.to_str().and_then(|file| file.split_once('='))
            && self.role.is_none()
            && !self.file.exists()
        {
            bail!(
                "--mask {name}: `{kind}` is not a kind of attention: write encoder, decoder, cross or pooling before the ="
            );
        }
        let role = match (self.role, task) {
            (Some(role), _) => role,
            (None, Task::Language) => AttentionRole::DecoderSelf,
            (None, Task::Classify | Task::Masked) => AttentionRole::EncoderSelf,
            (None, _) => bail!(
                "--mask {name}: a translator has three kinds of attention: write --mask encoder={name}, decoder={name} or cross={name}"
            ),
        };
        let mut text = String::new();
        let file = File::open(&self.file).with_context(|| format!("cannot open {name}"))?;
        file.take(MAX_BYTES + 1).read_to_string(&mut text).with_context(|| format!("cannot read {name}"))?;
        if text.len() as u64 > MAX_BYTES {
            bail!("{name} has more than {MAX_BYTES} bytes, too many for a mask");
        }
        Ok(MaskRows::parse(&text).with_context(|| name.to_string())?.mask(role))
    }

    pub(super) fn file(&self) -> &PathBuf {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attention_may_stand_before_the_file() {
        let parsed = |text: &str| text.parse::<MaskArgument>();
        let some = |role, file: &str| Ok(MaskArgument { role, file: file.into() });
        assert_eq!(parsed("a.txt"), some(None, "a.txt"));
        assert_eq!(parsed("cross=a.txt"), some(Some(AttentionRole::Cross), "a.txt"));
        assert_eq!(parsed("enc=b=c"), some(Some(AttentionRole::EncoderSelf), "b=c"));
        assert_eq!(parsed("odd=c"), some(None, "odd=c"));
        assert!(parsed("pooling=").is_err() && parsed("").is_err());
    }
}
