//! The macro that turns the table of keys into types, defaults, documentation and flags: each key is declared once.

use super::setting::{Limit, Setting};
use super::{Literal, Recipe};

/// A part of a recipe: `[training]`.
#[derive(Debug)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub help: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// A key of a recipe.
#[derive(Debug)]
pub struct Key {
    /// The section that it stands in.
    pub section: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// What it means, in a sentence without a full stop.
    pub help: &'static str,
    /// What is expected, to follow "must be".
    pub expects: &'static str,
    /// What stands for a value in the usage of its flag: `--heads <N>`.
    pub value_name: &'static str,
    /// Whether several values make sense.
    pub many: bool,
    /// Whether a bare word is text whatever it looks like.
    pub(super) bare: bool,
    pub(super) prefix: &'static str,
    pub(super) get: fn(&Recipe) -> Literal,
    pub(super) set: fn(&mut Recipe, &Literal) -> Result<(), String>,
}

impl Key {
    /// `training.dropout`.
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// The flag of the command line, without its dashes: `dropout`, `vocabulary-size`.
    pub fn flag(&self) -> String {
        format!("{}{}", self.prefix, self.name).replace('_', "-")
    }

    /// What someone typed for it.
    pub(super) fn typed(&self, text: &str) -> Literal {
        match Literal::typed(text) {
            literal @ (Literal::List(_) | Literal::Text(_)) => literal,
            _ if self.bare => Literal::Text(text.to_owned()),
            literal => literal,
        }
    }

    /// Its value in a recipe.
    pub fn value(&self, recipe: &Recipe) -> Literal {
        (self.get)(recipe)
    }
}

/// Reads a value, or says what it must be.
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
            $( $(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:expr, $limit:expr; )+
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

        /// Everything that decides how a model is trained.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Recipe {
            $( $(#[doc = $about])+ pub $section: $Section, )+
        }

        /// All sections with all keys.
        pub const SECTIONS: &[$crate::train::recipe::Section] = &[$(
            $crate::train::recipe::Section {
                name: stringify!($section),
                help: concat!($($about),+).trim_ascii(),
                keys: &[$(
                    $crate::train::recipe::Key {
                        section: stringify!($section),
                        name: stringify!($key),
                        help: concat!($($doc),+).trim_ascii(),
                        expects: <$type as Setting>::EXPECTS,
                        value_name: <$type as Setting>::VALUE_NAME,
                        many: <$type as Setting>::MANY,
                        bare: <$type as Setting>::BARE,
                        prefix: $prefix,
                        get: |recipe| recipe.$section.$key.literal(),
                        set: |recipe, literal| {
                            recipe.$section.$key = $crate::train::recipe::table::read(literal, $limit)?;
                            Ok(())
                        },
                    },
                )+],
            },
        )+];
    };
}

pub(super) use recipe;
