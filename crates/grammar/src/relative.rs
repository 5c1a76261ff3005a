//! 我昨天买的那辆车: the car that I bought yesterday. It precedes the noun in Chinese and follows it in English.

use super::dice::Dice;
use super::lexicon::{Class, SUBJECTS, Subject, Verb};

/// A relative clause: subject, verb and time.
#[derive(Debug)]
pub(super) struct Relative {
    subject: &'static Subject,
    verb: &'static Verb,
    time: Time,
}

#[derive(Debug)]
enum Time {
    Past,
    Yesterday,
}

impl Relative {
    pub(super) fn new(class: &'static Class, dice: &mut Dice) -> Relative {
        let time = if dice.chance(1, 3) { Time::Yesterday } else { Time::Past };
        Relative { subject: dice.pick(SUBJECTS), verb: dice.pick(&class.verbs), time }
    }

    pub(super) fn chinese(&self) -> Vec<&'static str> {
        let mut words = self.subject.chinese.to_vec();
        if let Time::Yesterday = self.time {
            words.push("昨天");
        }
        words.extend([self.verb.chinese, "的"]);
        words
    }

    pub(super) fn english(&self) -> String {
        let time = match self.time {
            Time::Past => "",
            Time::Yesterday => " yesterday",
        };
        format!("that {} {}{time}", self.subject.english, self.verb.past)
    }
}
