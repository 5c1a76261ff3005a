//! Numbers, persons, spans of time.

/// A number from two up; one is the article.
#[derive(Debug)]
pub(in super::super) struct Numeral {
    pub(in super::super) chinese: &'static str,
    pub(in super::super) english: &'static str,
}

/// A possessive.
#[derive(Debug)]
pub(in super::super) struct Owner {
    pub(in super::super) chinese: &'static str,
    pub(in super::super) english: &'static str,
}

/// A subject pronoun.
#[derive(Debug)]
pub(in super::super) struct Subject {
    pub(in super::super) chinese: &'static [&'static str],
    /// In the capitalization of mid-sentence.
    pub(in super::super) english: &'static str,
    pub(in super::super) be: &'static str,
}

/// A span of time; days are counted without a measure word.
#[derive(Debug)]
pub(in super::super) struct Duration {
    pub(in super::super) measure: Option<&'static str>,
    pub(in super::super) chinese: &'static str,
    pub(in super::super) singular: &'static str,
    pub(in super::super) plural: &'static str,
}

/// An activity that takes a span of time.
#[derive(Debug)]
pub(in super::super) struct Pastime {
    pub(in super::super) chinese: &'static str,
    pub(in super::super) past: &'static str,
}

impl Subject {
    /// Whether the verb takes its -s.
    pub(in super::super) fn is_third(&self) -> bool {
        self.be == "is"
    }
}

const fn numeral(chinese: &'static str, english: &'static str) -> Numeral {
    Numeral { chinese, english }
}

const fn subject(chinese: &'static [&'static str], english: &'static str, be: &'static str) -> Subject {
    Subject { chinese, english, be }
}

pub(in super::super) const NUMERALS: &[Numeral] = &[
    numeral("两", "two"),
    numeral("三", "three"),
    numeral("四", "four"),
    numeral("五", "five"),
    numeral("六", "six"),
    numeral("七", "seven"),
    numeral("八", "eight"),
    numeral("九", "nine"),
    numeral("十", "ten"),
    numeral("十一", "eleven"),
    numeral("十二", "twelve"),
    numeral("十五", "fifteen"),
    numeral("二十", "twenty"),
    numeral("三十", "thirty"),
    numeral("五十", "fifty"),
    numeral("一百", "a hundred"),
];

/// Two to ten, which can also follow "these" and "my".
pub(in super::super) const SMALL_NUMERALS: &[Numeral] = NUMERALS.split_at(9).0;

pub(in super::super) const OWNERS: &[Owner] = &[
    Owner { chinese: "我", english: "my" },
    Owner { chinese: "你", english: "your" },
    Owner { chinese: "他", english: "his" },
    Owner { chinese: "她", english: "her" },
    Owner { chinese: "我们", english: "our" },
    Owner { chinese: "他们", english: "their" },
];

pub(in super::super) const SUBJECTS: &[Subject] = &[
    subject(&["我"], "I", "am"),
    subject(&["你"], "you", "are"),
    subject(&["他"], "he", "is"),
    subject(&["她"], "she", "is"),
    subject(&["我们"], "we", "are"),
    subject(&["他们"], "they", "are"),
    subject(&["李明"], "Li Ming", "is"),
    subject(&["安娜"], "Anna", "is"),
    subject(&["我", "爸爸"], "my father", "is"),
    subject(&["我", "妈妈"], "my mother", "is"),
];

pub(in super::super) const DURATIONS: &[Duration] = &[
    Duration { measure: Some("个"), chinese: "小时", singular: "hour", plural: "hours" },
    Duration { measure: Some("个"), chinese: "星期", singular: "week", plural: "weeks" },
    Duration { measure: Some("个"), chinese: "月", singular: "month", plural: "months" },
    Duration { measure: None, chinese: "分钟", singular: "minute", plural: "minutes" },
    Duration { measure: None, chinese: "天", singular: "day", plural: "days" },
];

pub(in super::super) const PASTIMES: &[Pastime] = &[
    Pastime { chinese: "等", past: "waited" },
    Pastime { chinese: "睡", past: "slept" },
    Pastime { chinese: "工作", past: "worked" },
    Pastime { chinese: "休息", past: "rested" },
];
