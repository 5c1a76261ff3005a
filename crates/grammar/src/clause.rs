//! Simple sentences, one function for each pattern. Each pattern is marked in both languages, so that tense,
//! question and negation are preserved.

use super::Draft;
use super::dice::Dice;
use super::lexicon::{
    Aspect, Class, DURATIONS, Duration, NUMERALS, Noun, PASTIMES, Role, SUBJECTS, State, Subject, Verb,
};
use super::noun_phrase::{Determiner, NounPhrase, Number};
use super::predicate::{describe, price};

/// A noun with its class.
pub(super) type Entry = (&'static Class, &'static Noun);

/// One sentence about the noun.
pub(super) fn clause((class, noun): Entry, dice: &mut Dice) -> Draft {
    match dice.weighted(&[5, 2, 3, 3, 3, 4, 6, 2, 2, 3, 1]) {
        0 => past((class, noun), dice),
        1 => question_about_the_past((class, noun), dice),
        2 => not_done((class, noun), dice),
        3 => doing((class, noun), dice),
        4 => wish((class, noun), dice),
        5 => state((class, noun), dice),
        6 => describe((class, noun), dice),
        7 if !class.places.is_empty() => existence((class, noun), dice),
        8 => identity((class, noun), dice),
        9 if class.role == Role::Goods => price((class, noun), dice),
        10 => wait(dice),
        _ => past((class, noun), dice),
    }
}

/// A definite or an indefinite object.
fn object((class, noun): Entry, dice: &mut Dice) -> NounPhrase {
    if dice.chance(2, 3) {
        NounPhrase::indefinite(class, noun, dice)
    } else {
        NounPhrase::definite(class, noun, dice)
    }
}

/// Like [`object`], for a verb of the class.
fn object_of_verb(entry: Entry, dice: &mut Dice) -> NounPhrase {
    object(entry, dice).with_verb(entry.0, dice)
}

/// A definite object for a verb of the class.
fn definite_object((class, noun): Entry, dice: &mut Dice) -> NounPhrase {
    NounPhrase::definite(class, noun, dice).with_verb(class, dice)
}

/// 我昨天买了一辆车。 I bought a car yesterday.
fn past(entry: Entry, dice: &mut Dice) -> Draft {
    let (subject, verb) = (dice.pick(SUBJECTS), dice.pick(&entry.0.verbs));
    let object = object_of_verb(entry, dice);
    let (day, when) = if dice.chance(1, 3) { (&["昨天"][..], " yesterday") } else { (&[][..], "") };
    Draft::new()
        .chinese(subject.chinese)
        .chinese(day)
        .chinese(&[verb.chinese, "了"])
        .chinese(&object.chinese())
        .statement(format!("{} {} {}{when}", subject.english, verb.past, object.english()))
}

/// 你买了这辆车吗？ Did you buy this car?
fn question_about_the_past(entry: Entry, dice: &mut Dice) -> Draft {
    let (subject, verb) = (dice.pick(SUBJECTS), dice.pick(&entry.0.verbs));
    let object = object_of_verb(entry, dice);
    Draft::new()
        .chinese(subject.chinese)
        .chinese(&[verb.chinese, "了"])
        .chinese(&object.chinese())
        .question(format!("did {} {} {}", subject.english, verb.base, object.english()))
}

/// 我没有买这辆车。 I did not buy this car.
fn not_done(entry: Entry, dice: &mut Dice) -> Draft {
    let (subject, verb) = (dice.pick(SUBJECTS), dice.pick(&entry.0.verbs));
    let object = definite_object(entry, dice);
    Draft::new()
        .chinese(subject.chinese)
        .chinese(&["没有", verb.chinese])
        .chinese(&object.chinese())
        .statement(format!("{} did not {} {}", subject.english, verb.base, object.english()))
}

/// 我正在修理一辆车。 I am repairing a car. 我明天会修理一辆车。 I will repair a car tomorrow.
fn doing(entry: Entry, dice: &mut Dice) -> Draft {
    let subject = dice.pick(SUBJECTS);
    let (verb, progressive) = action(entry.0, dice);
    let object = object_of_verb(entry, dice);
    let (marks, words) = match dice.below(3) {
        0 => (&["正在"][..], format!("{} {progressive} {}", subject.be, object.english())),
        1 => (&["会"][..], format!("will {} {}", verb.base, object.english())),
        _ => (&["明天", "会"][..], format!("will {} {} tomorrow", verb.base, object.english())),
    };
    Draft::new()
        .chinese(subject.chinese)
        .chinese(marks)
        .chinese(&[verb.chinese])
        .chinese(&object.chinese())
        .statement(format!("{} {words}", subject.english))
}

/// 她想买一辆车。 She wants to buy a car. 她不想买这辆车。 她想买这辆车吗？
fn wish(entry: Entry, dice: &mut Dice) -> Draft {
    let subject = dice.pick(SUBJECTS);
    let (verb, _) = action(entry.0, dice);
    let form = dice.below(3);
    let object = if form == 1 { definite_object(entry, dice) } else { object_of_verb(entry, dice) };
    let marks = if form == 1 { &["不", "想"][..] } else { &["想"][..] };
    let draft = Draft::new()
        .chinese(subject.chinese)
        .chinese(marks)
        .chinese(&[verb.chinese])
        .chinese(&object.chinese());
    let rest = format!("to {} {}", verb.base, object.english());
    match form {
        0 => draft.statement(format!("{} {} {rest}", subject.english, agree("want", subject))),
        1 => draft.statement(format!("{} {} not want {rest}", subject.english, does(subject))),
        _ => draft.question(format!("{} {} want {rest}", does(subject), subject.english)),
    }
}

/// 我喜欢这辆车。 我不需要这辆车。 你有一辆车吗？ 他没有车。
fn state(entry: Entry, dice: &mut Dice) -> Draft {
    let (class, noun) = entry;
    let (subject, state) = (dice.pick(SUBJECTS), *dice.pick(&class.states));
    let form = dice.below(3);
    let (chinese, english) = match state {
        State::Like => ("喜欢", "like"),
        State::Need => ("需要", "need"),
        State::Have => ("有", "have"),
    };
    let object = match (state, form) {
        (State::Have, 1) => NounPhrase::described(Determiner::Any, class, noun, dice),
        (State::Have, _) => NounPhrase::indefinite(class, noun, dice),
        (State::Like, _) | (State::Need, 1) => NounPhrase::definite(class, noun, dice),
        (State::Need, _) => object(entry, dice),
    };
    let not = if state == State::Have { "没" } else { "不" };
    let marks = if form == 1 { vec![not, chinese] } else { vec![chinese] };
    // Written as one word in 没有.
    let marks = if marks == ["没", "有"] { vec!["没有"] } else { marks };
    let draft = Draft::new().chinese(subject.chinese).chinese(&marks).chinese(&object.chinese());
    let object = object.english();
    match form {
        0 => draft.statement(format!("{} {} {object}", subject.english, agree(english, subject))),
        1 => draft.statement(format!("{} {} not {english} {object}", subject.english, does(subject))),
        _ => draft.question(format!("{} {} {english} {object}", does(subject), subject.english)),
    }
}

/// 桌子上有三本书。 There are three books on the table.
fn existence(entry: Entry, dice: &mut Dice) -> Draft {
    let object = NounPhrase::indefinite(entry.0, entry.1, dice);
    let place = dice.pick(&entry.0.places);
    let be = match object.number() {
        Number::Singular => "is",
        Number::Plural => "are",
    };
    Draft::new().chinese(&[place.chinese, "有"]).chinese(&object.chinese()).statement(format!(
        "there {be} {} {}",
        object.english(),
        place.english
    ))
}

/// 这是一辆车。 This is a car. 她不是一位医生。 She is not a doctor. 那是一本书吗？ Is that a book?
fn identity(entry: Entry, dice: &mut Dice) -> Draft {
    let (class, noun) = entry;
    let (chinese, english) = match (class.role, dice.below(2)) {
        (Role::Person, 0) => ("他", "he"),
        (Role::Person, _) => ("她", "she"),
        (_, 0) => ("这", "this"),
        _ => ("那", "that"),
    };
    let object = NounPhrase::described(Determiner::A, class, noun, dice);
    let form = dice.below(3);
    let be = if form == 1 { &["不", "是"][..] } else { &["是"][..] };
    let draft = Draft::new().chinese(&[chinese]).chinese(be).chinese(&object.chinese());
    let object = object.english();
    match form {
        0 => draft.statement(format!("{english} is {object}")),
        1 => draft.statement(format!("{english} is not {object}")),
        _ => draft.question(format!("is {english} {object}")),
    }
}

/// 我等了一个小时。 I waited for an hour.
fn wait(dice: &mut Dice) -> Draft {
    let (subject, pastime) = (dice.pick(SUBJECTS), dice.pick(PASTIMES));
    let (words, english) = span(dice);
    Draft::new()
        .chinese(subject.chinese)
        .chinese(&[pastime.chinese, "了"])
        .chinese(&words)
        .statement(format!("{} {} for {english}", subject.english, pastime.past))
}

/// 三个小时: three hours.
pub(super) fn span(dice: &mut Dice) -> (Vec<&'static str>, String) {
    let Duration { measure, chinese, singular, plural } = dice.pick(DURATIONS);
    let (number, english) = if dice.chance(1, 3) {
        ("一", format!("{} {singular}", super::article::article(singular)))
    } else {
        let numeral = dice.pick(NUMERALS);
        (numeral.chinese, format!("{} {plural}", numeral.english))
    };
    let mut words = vec![number];
    words.extend(*measure);
    words.push(chinese);
    (words, english)
}

/// A verb that has a progressive form, with that form.
fn action(class: &'static Class, dice: &mut Dice) -> (&'static Verb, &'static str) {
    loop {
        let verb = dice.pick(&class.verbs);
        if let Aspect::Action(progressive) = verb.aspect {
            return (verb, progressive);
        }
    }
}

fn does(subject: &Subject) -> &'static str {
    if subject.is_third() { "does" } else { "do" }
}

fn agree(verb: &str, subject: &Subject) -> String {
    match (subject.is_third(), verb) {
        (false, _) => verb.to_owned(),
        (true, "have") => "has".to_owned(),
        (true, _) => format!("{verb}s"),
    }
}
