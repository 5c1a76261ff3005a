//! The metrics and their settings.

use anyhow::{Result, bail};
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use heedful::metrics::{
    AsianText, BleuOptions, BleuSmoothing, BleuTokenizer, Case, ChrfOptions, ChrfSmoothing, Metric, Orders,
    Punctuation, TeachingOptions, TerOptions, TercomNormalization, Whitespace,
};

/// Names of the metrics on the command line and in JSON, in the order of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum MetricName {
    /// N-gram precision with a brevity penalty; higher is better
    Bleu,
    /// Character n-gram F-score; higher is better
    Chrf,
    /// chrF with word n-grams
    #[value(name = "chrf++")]
    ChrfPlusPlus,
    /// Translation edit rate; lower is better
    Ter,
    /// exp(min(0, 1 − len_ref/len_hyp)) · Π p_n^(1/2^n), unsmoothed: the textbook form
    BleuTeaching,
    /// Labels: the share of correct ones; HYP and REF have a label per line
    Accuracy,
    /// Labels: F1 (macro, micro, weighted, and of each label) with the confusion matrix
    F1,
    /// Perplexity of HYP under a model (--model) per token, word and byte; lower is better
    Perplexity,
}

/// The kind of input that a metric measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricKind {
    Translations,
    Labels,
    Text,
}

impl MetricName {
    pub(super) fn key(self) -> &'static str {
        match self {
            MetricName::Bleu => "bleu",
            MetricName::Chrf => "chrf",
            MetricName::ChrfPlusPlus => "chrf++",
            MetricName::Ter => "ter",
            MetricName::BleuTeaching => "bleu-teaching",
            MetricName::Accuracy => "accuracy",
            MetricName::F1 => "f1",
            MetricName::Perplexity => "perplexity",
        }
    }

    pub(super) fn kind(self) -> MetricKind {
        match self {
            MetricName::Accuracy | MetricName::F1 => MetricKind::Labels,
            MetricName::Perplexity => MetricKind::Text,
            _ => MetricKind::Translations,
        }
    }
}

/// Settings of the metrics.
#[derive(clap::Args)]
pub(super) struct Settings {
    /// Tokenizer; zh for Chinese
    #[arg(long, value_name = "NAME", help_heading = "BLEU", default_value = BleuTokenizer::V13a.name(), value_parser = tokenize_parser())]
    tokenize: BleuTokenizer,
    /// Smoothing for orders without a matching n-gram
    #[arg(long, value_name = "FORM", help_heading = "BLEU", value_enum, default_value = "exp")]
    smooth: SmoothingForm,
    /// Value of --smooth floor [default: 0.1] or add-k [default: 1]
    #[arg(long, value_name = "X", help_heading = "BLEU")]
    smooth_value: Option<f64>,
    /// Ignore case (TER always does, unless --ter-case-sensitive is given)
    #[arg(long)]
    lowercase: bool,
    /// Longest n-gram of bleu-teaching
    #[arg(long, value_name = "K", help_heading = "BLEU", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..))]
    teaching_order: u8,
    /// Longest character n-gram
    #[arg(long, value_name = "N", default_value_t = 6, help_heading = "chrF", value_parser = clap::value_parser!(u8).range(1..))]
    chrf_char_order: u8,
    /// β of the F-score: recall weighs β times as much as precision
    #[arg(long, value_name = "B", default_value_t = 2, help_heading = "chrF")]
    chrf_beta: u32,
    /// Count white space as characters
    #[arg(long, help_heading = "chrF")]
    chrf_whitespace: bool,
    /// Epsilon smoothing, as in chrF++.py, Moses and NLTK
    #[arg(long, help_heading = "chrF")]
    chrf_eps_smoothing: bool,
    /// Normalize: separate punctuation, decode entities
    #[arg(long, help_heading = "TER")]
    ter_normalized: bool,
    /// Remove punctuation
    #[arg(long, help_heading = "TER")]
    ter_no_punct: bool,
    /// Treat East Asian characters as words (with --ter-normalized) and their punctuation as punctuation
    #[arg(long, help_heading = "TER")]
    ter_asian_support: bool,
    /// Do not ignore case
    #[arg(long, help_heading = "TER")]
    ter_case_sensitive: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SmoothingForm {
    /// Exponential: half a match for the first such order, a quarter for the next (the default of sacreBLEU)
    Exp,
    /// --smooth-value matches instead of 0
    Floor,
    /// Add --smooth-value to matches and n-grams of all orders above 1
    AddK,
    /// No smoothing: BLEU is 0
    None,
}

/// Parses the name of a tokenizer of BLEU.
pub(in crate::commands) fn tokenize_parser() -> impl TypedValueParser<Value = BleuTokenizer> {
    let names = PossibleValuesParser::new(BleuTokenizer::ALL.map(BleuTokenizer::name));
    names.map(|name| BleuTokenizer::named(&name).expect("clap accepts only these names"))
}

impl Settings {
    pub(super) fn check(&self) -> Result<()> {
        let Some(value) = self.smooth_value else { return Ok(()) };
        if matches!(self.smooth, SmoothingForm::Exp | SmoothingForm::None) {
            bail!(
                "--smooth-value needs --smooth floor or --smooth add-k: the other methods have no parameter"
            );
        }
        if !value.is_finite() || value < 0.0 {
            bail!("--smooth-value {value} is out of range: give a number that is not negative, such as 0.1");
        }
        Ok(())
    }

    /// Whether BLEU tokenizes the text itself.
    pub(super) fn tokenizes(&self) -> bool {
        self.tokenize != BleuTokenizer::None
    }

    /// Upper bound of the number of words that TER finds in a text.
    pub(super) fn max_ter_words(&self, text: &str) -> usize {
        if self.ter_normalized || self.ter_asian_support {
            text.chars().count()
        } else {
            text.split_whitespace().count()
        }
    }

    /// Whether BLEU splits words at spaces and punctuation.
    pub(super) fn splits_at_spaces(&self) -> bool {
        matches!(self.tokenize, BleuTokenizer::V13a | BleuTokenizer::International)
    }

    /// The metric for a corpus.
    pub(super) fn metric(&self, name: MetricName) -> Box<dyn Metric> {
        match name {
            MetricName::Bleu => Box::new(self.bleu()),
            MetricName::Chrf => Box::new(self.chrf()),
            MetricName::ChrfPlusPlus => Box::new(self.chrf().plus_plus()),
            MetricName::Ter => Box::new(self.ter()),
            MetricName::BleuTeaching => Box::new(TeachingOptions {
                tokenize: self.tokenize,
                case: self.case(),
                max_order: self.teaching_order.into(),
            }),
            MetricName::Accuracy | MetricName::F1 | MetricName::Perplexity => {
                unreachable!("labels and texts are measured elsewhere")
            }
        }
    }

    /// The metric for single sentences: BLEU is averaged over the orders that a sentence has.
    pub(super) fn sentence_metric(&self, name: MetricName) -> Box<dyn Metric> {
        match name {
            MetricName::Bleu => Box::new(self.bleu().for_sentences()),
            _ => self.metric(name),
        }
    }

    fn bleu(&self) -> BleuOptions {
        let smoothing = match self.smooth {
            SmoothingForm::Exp => BleuSmoothing::Exponential,
            SmoothingForm::Floor => BleuSmoothing::Floor(self.smooth_value.unwrap_or(BleuSmoothing::FLOOR)),
            SmoothingForm::AddK => BleuSmoothing::AddK(self.smooth_value.unwrap_or(BleuSmoothing::ADD_K)),
            SmoothingForm::None => BleuSmoothing::None,
        };
        BleuOptions {
            tokenize: self.tokenize,
            smoothing,
            case: self.case(),
            orders: Orders::All,
            max_order: 4,
        }
    }

    fn chrf(&self) -> ChrfOptions {
        ChrfOptions {
            char_order: self.chrf_char_order.into(),
            word_order: 0,
            beta: self.chrf_beta,
            case: self.case(),
            whitespace: if self.chrf_whitespace { Whitespace::Counted } else { Whitespace::Dropped },
            smoothing: if self.chrf_eps_smoothing {
                ChrfSmoothing::Epsilon
            } else {
                ChrfSmoothing::EffectiveOrder
            },
        }
    }

    fn ter(&self) -> TerOptions {
        TerOptions {
            normalization: if self.ter_normalized {
                TercomNormalization::On
            } else {
                TercomNormalization::Off
            },
            punctuation: if self.ter_no_punct { Punctuation::Removed } else { Punctuation::Kept },
            asian: if self.ter_asian_support { AsianText::Split } else { AsianText::Plain },
            case: if self.ter_case_sensitive { Case::Mixed } else { Case::Lower },
        }
    }

    fn case(&self) -> Case {
        if self.lowercase { Case::Lower } else { Case::Mixed }
    }
}
