//! The macro that generates types, defaults, documentation and flags from the table of keys: each key is
//! declared once.

use super::scope::Scope;
use super::setting::{Limit, Setting};
use super::{Literal, Recipe};

/// A section of a recipe: `[training]`.
#[derive(Debug)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub help: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// A key of a recipe.
#[derive(Debug)]
pub struct Key {
    /// Its section.
    pub section: &'static str,
    /// Its name within the section.
    pub name: &'static str,
    /// Its description, a sentence without a full stop.
    pub help: &'static str,
    /// The expected value, to follow "must be".
    pub expects: &'static str,
    /// The placeholder in the usage of its flag: `--heads <N>`.
    pub value_name: &'static str,
    /// Whether it takes several values.
    pub many: bool,
    /// Whether an unquoted value is always text.
    pub(super) bare: bool,
    pub(super) prefix: &'static str,
    /// The runs that use it.
    pub(crate) scope: Scope,
    pub(super) get: fn(&Recipe) -> Literal,
    pub set: fn(&mut Recipe, &Literal) -> Result<(), String>,
}

/// Keys with the names that they had in earlier recipes.
const FORMER_NAMES: [(&str, &str); 4] = [
    ("model.kernel_size", "taps"),
    ("training.lr", "peak"),
    ("training.min_lr", "floor"),
    ("training.max_grad_norm_ratio", "explosion"),
];

impl Key {
    /// `training.dropout`.
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// The flag of the command line, without its dashes: `dropout`, `vocabulary-size`.
    pub fn flag(&self) -> String {
        format!("{}{}", self.prefix, self.name).replace('_', "-")
    }

    /// Its name in earlier recipes, which are still read.
    pub fn former_name(&self) -> Option<&'static str> {
        FORMER_NAMES.iter().find(|(path, _)| *path == self.path()).map(|(_, former)| *former)
    }

    /// Parses a value from the command line.
    pub(super) fn typed(&self, text: &str) -> Literal {
        match Literal::typed(text) {
            literal @ (Literal::List(_) | Literal::Text(_)) => literal,
            _ if self.bare => Literal::Text(text.to_owned()),
            literal => literal,
        }
    }

    /// The value of this key in a recipe.
    pub fn value(&self, recipe: &Recipe) -> Literal {
        (self.get)(recipe)
    }
}

/// Parses a value; the error names the expected value.
pub(super) fn read<T: Setting>(literal: &Literal, limit: Limit) -> Result<T, String> {
    let value = T::read(literal).ok_or_else(|| format!("must be {}, not {literal}", T::EXPECTS))?;
    match value.number() {
        Some(number) if !limit.allows(number) => Err(format!("must be {limit}, not {literal}")),
        _ => Ok(value),
    }
}

macro_rules! recipe {
    ($(
        $(#[doc = $about:literal])+
        [$section:ident: $Section:ident, $prefix:literal] {
            $( $(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:expr, $limit:expr $(, $scope:expr)?; )+
        }
    )+) => {
        $(
            $(#[doc = $about])+
            #[derive(Clone, Debug, PartialEq)]
            pub struct $Section {
                $( $(#[doc = $doc])+ pub $key: $type, )+
            }

            impl Default for $Section {
                fn default() -> $Section {
                    $Section { $( $key: $default, )+ }
                }
            }
        )+

        /// All settings of a training run.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Recipe {
            $( $(#[doc = $about])+ pub $section: $Section, )+
            /// The keys that are not set and depend on the length of the run ([`Recipe::AUTOMATIC_KEYS`]).
            pub automatic: Vec<&'static str>,
        }

        /// All sections with all keys.
        pub const SECTIONS: &[$crate::recipe::Section] = &[$(
            $crate::recipe::Section {
                name: stringify!($section),
                help: concat!($($about),+).trim_ascii(),
                keys: &[$(
                    $crate::recipe::Key {
                        section: stringify!($section),
                        name: stringify!($key),
                        help: concat!($($doc),+).trim_ascii(),
                        expects: <$type as Setting>::EXPECTS,
                        value_name: <$type as Setting>::VALUE_NAME,
                        many: <$type as Setting>::MANY,
                        bare: <$type as Setting>::BARE,
                        prefix: $prefix,
                        scope: recipe!(@scope $($scope)?),
                        get: |recipe| recipe.$section.$key.literal(),
                        set: |recipe, literal| {
                            recipe.$section.$key = $crate::recipe::table::read(literal, $limit)?;
                            Ok(())
                        },
                    },
                )+],
            },
        )+];
    };
    (@scope) => { $crate::recipe::scope::ALL };
    (@scope $scope:expr) => { $scope };
}

pub(super) use recipe;
