//! Noun phrases: determiner, adjectives, kind, noun.
//!
//! ```text
//! English   determiner · opinion · size or age · colour · kind · noun                     an expensive new red car
//! Chinese   determiner · measure · opinion · colour · size or age · kind · noun           一辆昂贵的红色新车
//! ```
//!
//! 的 follows the first adjective only: 红色的车, 红色的新车, 昂贵的红色新车. Size and age attach to a bare noun (新车)
//! and take 的 before one that has a kind (新的电动汽车). After an owner only an opinion takes it: 我的红色裙子,
//! but 我的昂贵的裙子. Chinese nouns have no plural: the determiner marks number.

use super::article::article;
use super::dice::Dice;
use super::lexicon::{
    Class, Modifier, NUMERALS, Noun, Numeral, OWNERS, Opinion, Owner, SMALL_NUMERALS, Senses,
};
use super::relative::Relative;

/// A noun with its determiner and modifiers.
#[derive(Debug)]
pub(super) struct NounPhrase {
    pub(super) determiner: Determiner,
    pub(super) opinion: Option<&'static Opinion>,
    pub(super) stature: Option<&'static Modifier>,
    pub(super) colour: Option<&'static Modifier>,
    pub(super) kind: Option<&'static Modifier>,
    pub(super) noun: &'static Noun,
}

/// The determiner, which precedes the adjectives.
#[derive(Debug)]
pub(super) enum Determiner {
    /// 一辆: a.
    A,
    /// Empty in Chinese, as after 没有: a.
    Any,
    /// 三辆: three.
    Number(&'static Numeral),
    /// 几辆: several.
    Several,
    /// 很多: many.
    Many,
    /// 每辆: every.
    Every,
    /// 这辆: this.
    This,
    /// 那辆: that.
    That,
    /// 这些: these; 这三辆: these three.
    These(Option<&'static Numeral>),
    /// 那些: those; 那三辆: those three.
    Those(Option<&'static Numeral>),
    /// 我的: my; 我的三辆: my three.
    Own(&'static Owner, Option<&'static Numeral>),
    /// 我买的那辆: the … that I bought; 我买的那三辆: the three … that I bought.
    The(Relative, Option<&'static Numeral>),
}

/// Grammatical number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Singular,
    Plural,
}

impl NounPhrase {
    /// An indefinite noun phrase: a, three, several, many.
    pub(super) fn indefinite(class: &'static Class, noun: &'static Noun, dice: &mut Dice) -> NounPhrase {
        let determiner = match dice.weighted(&[6, 3, 1, 1]) {
            0 => Determiner::A,
            1 => Determiner::Number(dice.pick(NUMERALS)),
            2 => Determiner::Several,
            _ => Determiner::Many,
        };
        NounPhrase::described(determiner, class, noun, dice)
    }

    /// A definite noun phrase: this, those three, my.
    pub(super) fn definite(class: &'static Class, noun: &'static Noun, dice: &mut Dice) -> NounPhrase {
        let owned = if class.has_owner() { 4 } else { 0 };
        let numeral = if dice.chance(1, 2) { Some(dice.pick(SMALL_NUMERALS)) } else { None };
        let determiner = match dice.weighted(&[3, 3, 2, 2, owned]) {
            0 => Determiner::This,
            1 => Determiner::That,
            2 => Determiner::These(numeral),
            3 => Determiner::Those(numeral),
            _ => Determiner::Own(dice.pick(OWNERS), numeral),
        };
        NounPhrase::described(determiner, class, noun, dice)
    }

    /// Adds adjectives and a kind that the class allows.
    pub(super) fn described(
        determiner: Determiner,
        class: &'static Class,
        noun: &'static Noun,
        dice: &mut Dice,
    ) -> NounPhrase {
        let is_marked = class.senses == Senses::Marked;
        let kind = if dice.chance(1, 2) || is_marked { dice.pick_any(&class.kinds) } else { None };
        // 昂贵的新德国汽车 has too many modifiers: before a kind, size and age exclude other adjectives.
        let (with_opinion, with_stature, with_colour) = match (dice.weighted(&[6, 4, 3, 3, 2, 2, 2, 1]), kind)
        {
            (0, _) => (false, false, false),
            (1, _) => (true, false, false),
            (2, _) => (false, true, false),
            (3, _) => (false, false, true),
            (4, _) | (5.., Some(_)) => (true, false, true),
            (5, None) => (true, true, false),
            (6, None) => (false, true, true),
            (_, None) => (true, true, true),
        };
        NounPhrase {
            determiner,
            opinion: if with_opinion { dice.pick_any(&class.opinions) } else { None },
            stature: if with_stature { dice.pick_any(&class.statures) } else { None },
            colour: if with_colour { dice.pick_any(&class.colours) } else { None },
            kind,
            noun,
        }
    }

    /// The phrase next to a verb of its class: the verb decides the sense, so the kind is optional.
    pub(super) fn with_verb(self, class: &Class, dice: &mut Dice) -> NounPhrase {
        let is_bare = class.senses == Senses::Marked && dice.chance(1, 2);
        NounPhrase { kind: self.kind.filter(|_| !is_bare), ..self }
    }

    pub(super) fn number(&self) -> Number {
        match self.determiner {
            Determiner::A | Determiner::Any | Determiner::Every | Determiner::This | Determiner::That => {
                Number::Singular
            }
            Determiner::Own(_, None) | Determiner::The(_, None) => Number::Singular,
            _ => Number::Plural,
        }
    }

    pub(super) fn chinese(&self) -> Vec<&'static str> {
        let mut words = self.determiner.chinese(self.noun.measure);
        let opinion = self.opinion.map(|opinion| opinion.attributive);
        let colour = self.colour.map(|colour| colour.chinese);
        let stature = self.stature.map(|stature| stature.chinese);
        let lone_stature = self.colour.is_none() && self.kind.is_none();
        let after_owner = matches!(self.determiner, Determiner::Own(_, None));
        let linked = self.opinion.is_some() || !(lone_stature || after_owner);
        for (place, adjective) in [opinion, colour, stature].into_iter().flatten().enumerate() {
            words.push(adjective);
            if place == 0 && linked {
                words.push("的");
            }
        }
        words.extend(self.kind.map(|kind| kind.chinese));
        // After two syllables the noun also has two: 电动汽车, 我的红色汽车, but 红色的车 and 红色的新车.
        let behind_two = self.kind.is_some() || (colour.is_some() && words.last() == colour.as_ref());
        words.push(if behind_two { self.noun.compound } else { self.noun.chinese });
        words
    }

    pub(super) fn english(&self) -> String {
        let noun = match self.number() {
            Number::Singular => self.noun.singular,
            Number::Plural => self.noun.plural,
        };
        let adjectives = [
            self.opinion.map(|opinion| opinion.english),
            self.stature.map(|stature| stature.english),
            self.colour.map(|colour| colour.english),
            self.kind.map(|kind| kind.english),
            Some(noun),
        ];
        let rest = adjectives.into_iter().flatten().collect::<Vec<_>>().join(" ");
        self.determiner.english(&rest)
    }
}

impl Determiner {
    fn chinese(&self, measure: &'static str) -> Vec<&'static str> {
        let counted = |before: &'static str, numeral: &Option<&'static Numeral>| match numeral {
            Some(numeral) => vec![before, numeral.chinese, measure],
            None => vec![before, "些"],
        };
        match self {
            Determiner::A => vec!["一", measure],
            Determiner::Any => Vec::new(),
            Determiner::Number(numeral) => vec![numeral.chinese, measure],
            Determiner::Several => vec!["几", measure],
            Determiner::Many => vec!["很多"],
            Determiner::Every => vec!["每", measure],
            Determiner::This => vec!["这", measure],
            Determiner::That => vec!["那", measure],
            Determiner::These(numeral) => counted("这", numeral),
            Determiner::Those(numeral) => counted("那", numeral),
            Determiner::Own(owner, None) => vec![owner.chinese, "的"],
            Determiner::Own(owner, Some(numeral)) => vec![owner.chinese, "的", numeral.chinese, measure],
            Determiner::The(relative, numeral) => {
                let mut words = relative.chinese();
                words.push("那");
                words.extend(numeral.map(|numeral| numeral.chinese));
                words.push(measure);
                words
            }
        }
    }

    /// The determiner around the rest of the phrase.
    fn english(&self, rest: &str) -> String {
        let counted = |before: &str, numeral: &Option<&'static Numeral>| match numeral {
            Some(numeral) => format!("{before} {} {rest}", numeral.english),
            None => format!("{before} {rest}"),
        };
        match self {
            Determiner::A | Determiner::Any => format!("{} {rest}", article(rest)),
            Determiner::Number(numeral) => format!("{} {rest}", numeral.english),
            Determiner::Several => format!("several {rest}"),
            Determiner::Many => format!("many {rest}"),
            Determiner::Every => format!("every {rest}"),
            Determiner::This => format!("this {rest}"),
            Determiner::That => format!("that {rest}"),
            Determiner::These(numeral) => counted("these", numeral),
            Determiner::Those(numeral) => counted("those", numeral),
            Determiner::Own(owner, numeral) => counted(owner.english, numeral),
            Determiner::The(relative, numeral) => {
                format!("{} {}", counted("the", numeral), relative.english())
            }
        }
    }
}
