//! Chooses size and training of a translator for its text, time and machine: the keys of
//! [`Recipe::FITTED_KEYS`] that are automatic.
//!
//! ```text
//! c   tokens of the text, on the longer side      t   those that fit into the time (measured for each size)
//!
//! size         the largest whose layers have at most 16 c and t parameters
//! batch        t / 8000 tokens: short runs need many updates more than exact gradients
//! norm         pre: trains at rates where post diverges
//! dropout      0.1, 0.2 or 0.3, the more the more epochs t / c
//! lr           2e-3 √(256 / d_model) (tokens of an update / 1024)^¼
//! schedule     trapezoid: warmup, constant rate, linear to zero
//! ```

use std::fmt;

use crate::layers::Norm;
use crate::recipe::{Averaging, Key, Literal, Recipe, ScheduleKind, find_key};

/// The sizes to choose from, in increasing order.
const SIZES: [Size; 3] = [
    Size { d_model: 128, d_ff: 256, heads: 4, layers: 4 },
    Size { d_model: 256, d_ff: 512, heads: 4, layers: 3 },
    Size { d_model: 512, d_ff: 2048, heads: 8, layers: 6 },
];

const PARAMETERS_PER_TEXT_TOKEN: f64 = 16.0;
const TRAINED_TOKENS_PER_PARAMETER: f64 = 1.0;
const UPDATES: f64 = 8000.0;

/// The size of a Transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    d_model: usize,
    d_ff: usize,
    heads: usize,
    layers: usize,
}

/// A value that was chosen for a run.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The key.
    pub key: &'static Key,
    value: Literal,
    reason: String,
}

/// `model.d_model = 128  # reason`.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setting = format!("{} = {}", self.key.path(), self.value);
        match self.reason.as_str() {
            "" => f.write_str(&setting),
            reason => write!(f, "{setting:<32}# {reason}"),
        }
    }
}

impl Size {
    /// The parameters of its layers.
    fn parameters(self) -> f64 {
        let (attention, feed_forward) = (4 * self.d_model * self.d_model, 2 * self.d_model * self.d_ff);
        (self.layers * (3 * attention + 2 * feed_forward)) as f64
    }

    /// The sizes for a text of this many tokens, the largest first; at least the smallest.
    pub(crate) fn for_text(tokens: f64) -> Vec<Size> {
        let suits = |size: &Size| size.parameters() <= PARAMETERS_PER_TEXT_TOKEN * tokens;
        SIZES.into_iter().rev().filter(|size| *size == SIZES[0] || suits(size)).collect()
    }

    /// Whether this many tokens are enough to train it.
    pub(crate) fn suits_training(self, tokens: f64) -> bool {
        TRAINED_TOKENS_PER_PARAMETER * self.parameters() <= tokens
    }

    /// Sets the keys of the size.
    pub(crate) fn set(self, recipe: &mut Recipe) {
        let model = &mut recipe.model;
        (model.d_model, model.d_ff, model.heads) = (self.d_model, self.d_ff, self.heads);
        (model.encoder_layers, model.decoder_layers) = (self.layers, self.layers);
    }
}

/// The text and the time of a run, in tokens of the longer side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// The tokens of the text.
    pub(crate) text: f64,
    /// The tokens that the model can be trained on in the time.
    pub(crate) trained: f64,
}

impl Budget {
    /// Chooses the automatic keys of a recipe, whose size is chosen. Returns the choices.
    pub(crate) fn choose(self, recipe: &mut Recipe) -> Vec<Choice> {
        let epochs = self.trained / self.text;
        let mut chosen = recipe.clone();
        let Recipe { model, training, checkpoint, .. } = &mut chosen;
        model.norm = Norm::Pre;
        training.schedule = ScheduleKind::Trapezoid;
        checkpoint.average = Averaging::None;
        training.dropout = match epochs {
            ..20.0 => 0.1,
            20.0..50.0 => 0.2,
            _ => 0.3,
        };
        if recipe.is_automatic("training.batch_tokens") {
            training.batch_tokens = batch_tokens(self.trained / training.accumulate as f64);
        }
        let tokens = (training.batch_tokens * training.accumulate) as f64;
        training.lr = learning_rate(model.d_model as f64, tokens);
        let open: Vec<&str> =
            Recipe::FITTED_KEYS.into_iter().filter(|path| recipe.is_automatic(path)).collect();
        let choices = open.into_iter().map(|path| {
            let key = find_key(path).expect("a key");
            let value = key.value(&chosen);
            (key.set)(recipe, &value).expect("a good value");
            Choice { key, value, reason: self.reason(path, tokens) }
        });
        choices.collect()
    }

    fn reason(self, path: &str, tokens: f64) -> String {
        let Budget { text, trained } = self;
        match path {
            "training.batch_tokens" => format!("about {:.0} updates", trained / tokens),
            "model.norm" => "stays stable at a high rate".to_owned(),
            "training.dropout" => format!("{:.0} epochs", trained / text),
            "training.schedule" => "constant, then linear to zero when the time ends".to_owned(),
            "training.lr" => "for this width and batch".to_owned(),
            "checkpoint.average" => "the rate ends at zero".to_owned(),
            "model.d_model" => format!("{} tokens of text, time for {}", rounded(text), rounded(trained)),
            _ => String::new(),
        }
    }
}

/// The batch size for about [`UPDATES`] updates.
fn batch_tokens(trained: f64) -> usize {
    let tokens = (trained / UPDATES / 256.0).round() as usize * 256;
    tokens.clamp(1024, 25_600)
}

/// The peak learning rate: 2e-3 for width 256 and 1024 tokens.
fn learning_rate(d_model: f64, tokens: f64) -> f64 {
    let rate = 2e-3 * (256.0 / d_model).sqrt() * (tokens / 1024.0).powf(0.25);
    (rate * 1e4).round() / 1e4
}

/// `430 thousand`, `12.3 million`.
fn rounded(tokens: f64) -> String {
    if tokens < 1e6 {
        format!("{:.0} thousand", tokens / 1e3)
    } else {
        format!("{:.1} million", tokens / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(automatic: &[&'static str], budget: Budget) -> (Recipe, Vec<String>) {
        let mut recipe = Recipe { automatic: automatic.to_vec(), ..Recipe::default() };
        SIZES[0].set(&mut recipe);
        let choices = budget.choose(&mut recipe);
        (recipe, choices.iter().map(Choice::to_string).collect())
    }

    #[test]
    fn larger_texts_allow_larger_sizes_and_the_time_decides() {
        let widths = |tokens| Size::for_text(tokens).iter().map(|size| size.d_model).collect::<Vec<_>>();
        assert_eq!(widths(100.0), [128]);
        assert_eq!(widths(430e3), [256, 128]);
        assert_eq!(widths(12e6), [512, 256, 128]);
        assert!(SIZES[1].suits_training(4e6) && !SIZES[1].suits_training(3.9e6));
    }

    #[test]
    fn open_keys_are_chosen_with_reasons_and_the_others_are_kept() {
        let budget = Budget { text: 500e3, trained: 5.1e6 };
        let (recipe, choices) = choose(&Recipe::FITTED_KEYS, budget);
        let training = &recipe.training;
        assert_eq!((training.batch_tokens, training.lr, training.dropout), (1024, 2.8e-3, 0.1));
        assert_eq!(
            (training.schedule, recipe.checkpoint.average),
            (ScheduleKind::Trapezoid, Averaging::None)
        );
        assert_eq!(choices.len(), Recipe::FITTED_KEYS.len());
        assert!(choices.contains(&"training.dropout = 0.1          # 10 epochs".to_owned()), "{choices:#?}");
        let (recipe, choices) = choose(&["training.lr"], Budget { trained: 60e6, ..budget });
        assert_eq!((recipe.training.batch_tokens, recipe.training.dropout), (4096, 0.1));
        assert_eq!((recipe.training.lr, choices.len()), (4e-3, 1));
        let (recipe, _) = choose(&Recipe::FITTED_KEYS, Budget { trained: 60e6, ..budget });
        assert_eq!((recipe.training.batch_tokens, recipe.training.dropout), (7424, 0.3));
    }
}
