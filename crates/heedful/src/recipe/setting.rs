//! The types of recipe values.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::Literal;

/// A type of value: parsing, printing, and the expected value in error messages.
pub(super) trait Setting: Sized {
    /// The expected value, to follow "must be".
    const EXPECTS: &'static str;
    /// The placeholder in the usage of its flag: `--heads <N>`.
    const VALUE_NAME: &'static str;
    /// Whether keys of this type take several values.
    const MANY: bool = false;
    /// Whether an unquoted value is always text: a file can be called `2016`.
    const BARE: bool = false;

    fn read(literal: &Literal) -> Option<Self>;
    fn literal(&self) -> Literal;

    /// The number that a [`Limit`] applies to, if the value is numeric.
    fn number(&self) -> Option<f64> {
        None
    }
}

/// The range of allowed numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    Any,
    AtLeast(f64),
    Above(f64),
    /// At least 0 and below 1.
    Share,
}

impl Limit {
    pub(super) fn allows(self, number: f64) -> bool {
        number.is_finite()
            && match self {
                Limit::Any => true,
                Limit::AtLeast(least) => number >= least,
                Limit::Above(bound) => number > bound,
                Limit::Share => (0.0..1.0).contains(&number),
            }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Any => write!(f, "finite"),
            Limit::AtLeast(least) => write!(f, "at least {least}"),
            Limit::Above(bound) => write!(f, "more than {bound}"),
            Limit::Share => write!(f, "at least 0 and below 1"),
        }
    }
}

macro_rules! whole_number {
    ($($type:ty),+) => {$(
        impl Setting for $type {
            const EXPECTS: &'static str = "a whole number";
            const VALUE_NAME: &'static str = "N";

            fn read(literal: &Literal) -> Option<$type> {
                match literal {
                    Literal::Integer(value) => (*value).try_into().ok(),
                    _ => None,
                }
            }

            fn literal(&self) -> Literal {
                Literal::Integer((*self).try_into().unwrap_or(i64::MAX))
            }

            fn number(&self) -> Option<f64> {
                Some(*self as f64)
            }
        }
    )+};
}

whole_number!(usize, u64);

impl Setting for f64 {
    const EXPECTS: &'static str = "a number";
    const VALUE_NAME: &'static str = "X";

    fn read(literal: &Literal) -> Option<f64> {
        match literal {
            Literal::Float(value) => Some(*value),
            Literal::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }

    fn literal(&self) -> Literal {
        Literal::Float(*self)
    }

    fn number(&self) -> Option<f64> {
        Some(*self)
    }
}

impl Setting for bool {
    const EXPECTS: &'static str = "true or false";
    const VALUE_NAME: &'static str = "true|false";

    fn read(literal: &Literal) -> Option<bool> {
        match literal {
            Literal::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    fn literal(&self) -> Literal {
        Literal::Boolean(*self)
    }
}

impl Setting for PathBuf {
    const EXPECTS: &'static str = "a path";
    const VALUE_NAME: &'static str = "PATH";
    const BARE: bool = true;

    fn read(literal: &Literal) -> Option<PathBuf> {
        match literal {
            Literal::Text(text) if !text.is_empty() => Some(text.into()),
            _ => None,
        }
    }

    fn literal(&self) -> Literal {
        Literal::Text(self.to_string_lossy().into_owned())
    }
}

impl Setting for String {
    const EXPECTS: &'static str = "a text";
    const VALUE_NAME: &'static str = "TEXT";
    const BARE: bool = true;

    fn read(literal: &Literal) -> Option<String> {
        match literal {
            Literal::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        }
    }

    fn literal(&self) -> Literal {
        Literal::Text(self.clone())
    }
}

/// One path or several.
impl Setting for Vec<PathBuf> {
    const EXPECTS: &'static str = "a path or a list of paths";
    const VALUE_NAME: &'static str = "FILE";
    const MANY: bool = true;
    const BARE: bool = true;

    fn read(literal: &Literal) -> Option<Vec<PathBuf>> {
        match literal {
            Literal::List(paths) => paths.iter().map(PathBuf::read).collect(),
            one => Some(vec![PathBuf::read(one)?]),
        }
    }

    fn literal(&self) -> Literal {
        Literal::List(self.iter().map(PathBuf::literal).collect())
    }
}

/// TOML has no null: an absent value is written `"none"`.
impl<T: Setting> Setting for Option<T> {
    const EXPECTS: &'static str = T::EXPECTS;
    const VALUE_NAME: &'static str = T::VALUE_NAME;
    const BARE: bool = T::BARE;

    fn read(literal: &Literal) -> Option<Option<T>> {
        match literal {
            Literal::Text(text) if text == "none" => Some(None),
            some => T::read(some).map(Some),
        }
    }

    fn literal(&self) -> Literal {
        self.as_ref().map_or_else(|| Literal::Text("none".to_owned()), T::literal)
    }

    fn number(&self) -> Option<f64> {
        self.as_ref().and_then(T::number)
    }
}

/// `90s`, `30m`, `1h30m`, `2d`.
impl Setting for Duration {
    const EXPECTS: &'static str = "a time such as 90s, 30m or 1h30m";
    const VALUE_NAME: &'static str = "TIME";

    fn read(literal: &Literal) -> Option<Duration> {
        let Literal::Text(text) = literal else { return None };
        let mut seconds = 0_u64;
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit())?;
            let (number, after) = rest.split_at(digits);
            let (_, unit) = UNITS.iter().find(|(name, _)| after.starts_with(*name))?;
            seconds = seconds.checked_add(number.parse::<u64>().ok()?.checked_mul(*unit)?)?;
            rest = &after[1..];
        }
        (!text.is_empty()).then(|| Duration::from_secs(seconds))
    }

    fn literal(&self) -> Literal {
        let mut seconds = self.as_secs();
        let mut text = String::new();
        for (name, unit) in UNITS {
            if seconds >= unit {
                text += &format!("{}{name}", seconds / unit);
                seconds %= unit;
            }
        }
        Literal::Text(if text.is_empty() { "0s".to_owned() } else { text })
    }

    fn number(&self) -> Option<f64> {
        Some(self.as_secs_f64())
    }
}

const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];

/// Declares the names of an enum's values for parsing and printing. Names after a `;` are for imported models
/// only: they occur in the recipes of runs that start from one, and messages do not suggest them.
macro_rules! choices {
    ($type:ty {
        $($name:literal => $value:path),+ $(,)? $(; $($foreign:literal => $imported:path),+ $(,)?)?
    }) => {
        impl $crate::recipe::setting::Setting for $type {
            const EXPECTS: &'static str = choices!(@list $($name),+);
            const VALUE_NAME: &'static str = "NAME";

            fn read(literal: &$crate::recipe::Literal) -> Option<$type> {
                match literal {
                    $crate::recipe::Literal::Text(text) => match text.as_str() {
                        $($name => Some($value),)+
                        $($($foreign => Some($imported),)+)?
                        _ => None,
                    },
                    _ => None,
                }
            }

            fn literal(&self) -> $crate::recipe::Literal {
                $crate::recipe::Literal::Text(match self {
                    $($value => $name,)+
                    $($($imported => $foreign,)+)?
                }.to_owned())
            }
        }
    };
    (@list $first:literal $(, $more:literal)*) => {
        concat!("`", $first, "`" $(, " or `", $more, "`")*)
    };
}

pub(super) use choices;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_and_printed() {
        for (text, seconds) in [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("2d", 172_800), ("0s", 0)] {
            let time = Duration::read(&Literal::Text(text.to_owned())).expect("a good time");
            assert_eq!(time.as_secs(), seconds);
            assert_eq!(Duration::read(&time.literal()), Some(time));
        }
        assert_eq!(Duration::from_secs(5401).literal(), Literal::Text("1h30m1s".to_owned()));
        for text in ["", "30", "m", "1.5h", "30 m", "1h30", "-5m", "99999999999999999999d", "5ä"] {
            assert_eq!(Duration::read(&Literal::Text(text.to_owned())), None, "{text}");
        }
    }

    #[test]
    fn none_is_a_value_of_optional_keys() {
        type Maybe = Option<usize>;
        assert_eq!(Maybe::read(&Literal::Text("none".to_owned())), Some(None));
        assert_eq!(Maybe::read(&Literal::Integer(4)), Some(Some(4)));
        assert_eq!(Maybe::read(&Literal::Integer(-4)), None);
        assert_eq!(usize::read(&Literal::Text("none".to_owned())), None);
    }

    #[test]
    fn one_path_is_a_list_of_one() {
        let one = Vec::<PathBuf>::read(&Literal::Text("a.txt".to_owned()));
        assert_eq!(one, Some(vec!["a.txt".into()]));
        assert_eq!(Vec::<PathBuf>::read(&Literal::List(vec![Literal::Float(1.0)])), None);
    }
}
