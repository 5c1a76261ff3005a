//! sacreBLEU's signature: everything that a score depends on, in one line.

use std::fmt;

/// The release of sacreBLEU whose scores and signatures are reproduced; the golden files were made with it.
pub const SACREBLEU_VERSION: &str = "2.6.0";

/// The number of references per sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReferenceCount {
    Fixed(usize),
    Varying,
}

/// The number of resamplings and their seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resampling {
    /// Bootstrap samples.
    pub bootstrap: Option<usize>,
    /// Trials of approximate randomisation.
    pub randomisation: Option<usize>,
    /// The seed of the draws.
    pub seed: u64,
}

/// A signature such as `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    pub(super) references: ReferenceCount,
    /// Written after `nrefs` if the result depends on resampling.
    pub resampling: Option<Resampling>,
    pub(super) settings: Vec<(&'static str, String)>,
    pub(super) version: String,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.references {
            ReferenceCount::Fixed(count) => write!(f, "nrefs:{count}")?,
            ReferenceCount::Varying => write!(f, "nrefs:var")?,
        }
        if let Some(resampling) = self.resampling {
            let counts = [("bs", resampling.bootstrap), ("ar", resampling.randomisation)];
            for (name, count) in counts {
                if let Some(count) = count {
                    write!(f, "|{name}:{count}")?;
                }
            }
            write!(f, "|seed:{}", resampling.seed)?;
        }
        for (name, value) in &self.settings {
            write!(f, "|{name}:{value}")?;
        }
        write!(f, "|version:{}", self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resampling_is_written_between_references_and_settings() {
        let signature = Signature {
            references: ReferenceCount::Varying,
            resampling: Some(Resampling { bootstrap: Some(1000), randomisation: None, seed: 12345 }),
            settings: vec![("case", "lc".to_owned())],
            version: "1".to_owned(),
        };
        assert_eq!(signature.to_string(), "nrefs:var|bs:1000|seed:12345|case:lc|version:1");
    }
}
