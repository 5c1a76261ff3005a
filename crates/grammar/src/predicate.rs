//! Sentences that describe a thing, and sentences about its price.

use super::Draft;
use super::clause::Entry;
use super::dice::Dice;
use super::lexicon::{LEXICON, SMALL_NUMERALS, SUBJECTS};
use super::noun_phrase::{Determiner, NounPhrase, Number};
use super::relative::Relative;

/// 这辆车很贵。 This car is expensive. 非常贵: very expensive. 不贵: not expensive. 贵吗？: is it expensive?
pub(super) fn describe(entry: Entry, dice: &mut Dice) -> Draft {
    // No opinion in the noun phrase: it could contradict the predicate.
    let thing = NounPhrase { opinion: None, ..definite(entry, dice) };
    let opinion = dice.pick(&entry.0.opinions);
    let form = dice.below(4);
    let marks = [&["很"][..], &["非常"], &["不"], &[]][form];
    let draft = Draft::new().chinese(&thing.chinese()).chinese(marks).chinese(&[opinion.predicative]);
    let (subject, be, quality) = (thing.english(), be(&thing), opinion.english);
    match form {
        0 => draft.statement(format!("{subject} {be} {quality}")),
        1 => draft.statement(format!("{subject} {be} very {quality}")),
        2 => draft.statement(format!("{subject} {be} not {quality}")),
        _ => draft.question(format!("{be} {subject} {quality}")),
    }
}

/// 这辆车太贵了，所以我没有买。 This car is too expensive, so I did not buy it.
/// 我喜欢这辆车，但是它太贵了。 I like this car, but it is too expensive.
pub(super) fn price(entry: Entry, dice: &mut Dice) -> Draft {
    let subject = dice.pick(SUBJECTS);
    let thing = NounPhrase::definite(entry.0, entry.1, dice);
    let (it, as_object, as_subject) = match thing.number() {
        Number::Singular => ("它", "it", "it"),
        Number::Plural => ("它们", "them", "they"),
    };
    let expensive = LEXICON.opinion("expensive");
    let too_expensive = ["太", expensive.predicative, "了"];
    let (be, price) = (be(&thing), expensive.english);
    if dice.chance(1, 2) {
        Draft::new()
            .chinese(&thing.chinese())
            .chinese(&too_expensive)
            .chinese(&["，", "所以"])
            .chinese(subject.chinese)
            .chinese(&["没有", "买"])
            .statement(format!(
                "{} {be} too {price}, so {} did not buy {as_object}",
                thing.english(),
                subject.english
            ))
    } else {
        let like = if subject.is_third() { "likes" } else { "like" };
        Draft::new()
            .chinese(subject.chinese)
            .chinese(&["喜欢"])
            .chinese(&thing.chinese())
            .chinese(&["，", "但是", it])
            .chinese(&too_expensive)
            .statement(format!(
                "{} {like} {}, but {as_subject} {be} too {price}",
                subject.english,
                thing.english()
            ))
    }
}

/// A definite noun phrase: demonstrative, possessive, or with a relative clause.
fn definite(entry: Entry, dice: &mut Dice) -> NounPhrase {
    let (class, noun) = entry;
    if dice.chance(2, 3) {
        return NounPhrase::definite(class, noun, dice);
    }
    let numeral = if dice.chance(1, 3) { Some(dice.pick(SMALL_NUMERALS)) } else { None };
    let determiner = Determiner::The(Relative::new(class, dice), numeral);
    NounPhrase::described(determiner, class, noun, dice).with_verb(class, dice)
}

fn be(thing: &NounPhrase) -> &'static str {
    match thing.number() {
        Number::Singular => "is",
        Number::Plural => "are",
    }
}
