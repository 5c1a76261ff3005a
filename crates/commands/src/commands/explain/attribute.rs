//! `heedful explain attribute`: the contributions of input tokens to predictions.

use anyhow::{Result, bail};
use clap::ValueEnum;
use heedful::explain::attribution::{Attribution, AttributionMethod, AttributionOptions, Reduction};

use super::inspected::{InspectArguments, Views};

/// Show which input tokens a prediction comes from
///
/// Rows are predictions: the tokens of the translation or text, the best token for a <mask>, or the label.
/// Columns are input tokens: those of the source and of the target's prefix, or of the text. Scores of
/// gradient-x-input, integrated-gradients and occlusion are in log-probability (natural logarithm); those of
/// rollout are shares. Gradients are taken with respect to the scaled token vector, without its position, in
/// f32; the baseline of integrated-gradients and occlusion is the zero vector. For models of the Transformer
/// family.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    inspect: InspectArguments,
    /// The text; with <mask> where a masked language model should predict a token
    #[arg(value_name = "TEXT")]
    text: String,
    /// Explain this translation, or this label of a classifier, instead of the model's own
    #[arg(long, value_name = "TEXT")]
    target: Option<String>,
    /// How contributions are computed
    #[arg(long, value_enum, default_value = "integrated-gradients")]
    method: MethodName,
    /// Steps of integrated-gradients; more steps reduce the completeness error [default: 64]
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// The score of a token from the contributions of the dimensions of its vector, for gradient-x-input and
    /// integrated-gradients [default: sum]
    #[arg(long, value_enum)]
    reduction: Option<ReductionName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodName {
    /// Gradient times token vector: fast, a linear approximation
    GradientXInput,
    /// The gradient averaged over the path from the zero vector: scores sum to the difference in
    /// log-probability, with the printed completeness error
    IntegratedGradients,
    /// Attention weights, mixed with the residual connection, multiplied through the layers
    Rollout,
    /// The loss of log-probability with the token's vector set to zero
    Occlusion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReductionName {
    /// The sum, which has a sign
    Sum,
    /// The L2 norm
    L2,
}

const EXAMPLES: &str = "\
Examples:
  heedful explain attribute run 'A dog runs.'
  heedful explain attribute run 'A dog runs.' --method occlusion -o dog.svg
  heedful explain attribute news 'shares fell after the report' --target business -o news.html";

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    arguments.check()?;
    let opened = arguments.inspect.open("attribution")?;
    let text = opened.text(&arguments.text, arguments.target.as_deref())?;
    let attribution = Attribution::new(&text, &arguments.options())?;
    drop(text);
    if let Some(error) = attribution.completeness_error() {
        eprintln!("heedful: largest completeness error of all predictions: {:.3} %", 100.0 * error);
    }
    opened.write(&Views {
        numbers: &attribution,
        tables: vec![attribution.table()],
        svg: &|| attribution.svg(),
        report: &|model| attribution.report(&format!("{model}: {}", arguments.text)),
    })
}

impl Arguments {
    /// Refuses flags that the method does not use.
    fn check(&self) -> Result<()> {
        if self.steps.is_some() && self.method != MethodName::IntegratedGradients {
            bail!("--steps is only for integrated-gradients: leave it out");
        }
        if self.reduction.is_some() && matches!(self.method, MethodName::Rollout | MethodName::Occlusion) {
            bail!("--reduction is only for gradient-x-input and integrated-gradients: leave it out");
        }
        Ok(())
    }

    fn options(&self) -> AttributionOptions {
        AttributionOptions {
            method: match self.method {
                MethodName::GradientXInput => AttributionMethod::GradientXInput,
                MethodName::IntegratedGradients => AttributionMethod::IntegratedGradients,
                MethodName::Rollout => AttributionMethod::Rollout,
                MethodName::Occlusion => AttributionMethod::Occlusion,
            },
            steps: self.steps.unwrap_or(AttributionOptions::default().steps),
            reduction: match self.reduction {
                None | Some(ReductionName::Sum) => Reduction::Sum,
                Some(ReductionName::L2) => Reduction::L2,
            },
        }
    }
}
