//! What people write, sing, play and think.

use super::adjectives::*;
use super::verbs::*;
use super::{Class, Role, Senses, State, modifier, noun};

pub(super) const BOOKS: Class = Class {
    nouns: &[
        noun("本", "书", "book", "books"),
        noun("本", "小说", "novel", "novels"),
        noun("本", "词典", "dictionary", "dictionaries"),
        noun("本", "杂志", "magazine", "magazines"),
        noun("本", "地图集", "atlas", "atlases"),
        noun("套", "百科全书", "encyclopedia", "encyclopedias"),
    ],
    opinions: &[INTERESTING, BORING, IMPORTANT, USEFUL, EXPENSIVE, CHEAP, ORDINARY, UNIQUE],
    statures: &[NEW, OLD],
    colours: COLOURS,
    kinds: &[
        modifier("历史", "history"),
        modifier("科学", "science"),
        modifier("艺术", "art"),
        modifier("英语", "English"),
        modifier("经济学", "economics"),
        modifier("二手", "used"),
    ],
    verbs: &[BUY, SELL, READ, WRITE, CHOOSE, FIND],
    states: &[State::Like, State::Need, State::Have],
    places: ON_A_TABLE,
    role: Role::Goods,
    senses: Senses::Usual,
};

pub(super) const PAPERS: Class = Class {
    nouns: &[
        noun("张", "地图", "map", "maps"),
        noun("张", "照片", "photo", "photos"),
        noun("封", "信", "letter", "letters"),
        noun("封", "邀请函", "invitation", "invitations"),
        noun("份", "报纸", "newspaper", "newspapers"),
        noun("份", "协议", "agreement", "agreements"),
        noun("份", "报告", "report", "reports"),
    ],
    opinions: &[IMPORTANT, INTERESTING, ORDINARY, USEFUL, UNIQUE],
    statures: &[NEW, OLD],
    colours: &[],
    kinds: &[],
    verbs: &[READ, CHOOSE, DISCUSS, SEE, FIND],
    states: &[State::Like, State::Need, State::Have],
    places: ON_A_TABLE,
    role: Role::Belonging,
    senses: Senses::Usual,
};

pub(super) const WORKS: Class = Class {
    nouns: &[
        noun("部", "电影", "movie", "movies"),
        noun("部", "歌剧", "opera", "operas"),
        noun("首", "歌", "song", "songs"),
        noun("首", "诗", "poem", "poems"),
        noun("篇", "文章", "article", "articles"),
        noun("个", "故事", "story", "stories"),
    ],
    opinions: &[INTERESTING, BORING, FAMOUS, ORDINARY, UNFORGETTABLE, UNIQUE],
    statures: &[NEW],
    colours: &[],
    kinds: COUNTRIES,
    verbs: &[ADMIRE, CHOOSE, DISCUSS, FIND],
    states: &[State::Like],
    places: &[],
    role: Role::Unowned,
    senses: Senses::Usual,
};

pub(super) const THOUGHTS: Class = Class {
    nouns: &[
        noun("个", "主意", "idea", "ideas"),
        noun("个", "计划", "plan", "plans"),
        noun("个", "机会", "opportunity", "opportunities"),
        noun("个", "例子", "example", "examples"),
        noun("个", "实验", "experiment", "experiments"),
        noun("个", "目标", "goal", "goals"),
    ],
    opinions: &[INTERESTING, IMPORTANT, ORDINARY, USEFUL, UNIQUE, SIMPLE],
    statures: &[NEW],
    colours: &[],
    kinds: &[],
    verbs: &[CHOOSE, DISCUSS, FIND],
    states: &[State::Like, State::Need, State::Have],
    places: &[],
    role: Role::Belonging,
    senses: Senses::Usual,
};

pub(super) const INSTRUMENTS: Class = Class {
    nouns: &[
        noun("把", "吉他", "guitar", "guitars"),
        noun("把", "小提琴", "violin", "violins"),
        noun("架", "钢琴", "piano", "pianos"),
        noun("架", "手风琴", "accordion", "accordions"),
    ],
    opinions: &[EXPENSIVE, CHEAP, BEAUTIFUL, UGLY, ORDINARY, UNIQUE],
    statures: &[NEW, OLD],
    colours: COLOURS,
    kinds: COUNTRIES,
    verbs: &[BUY, SELL, RENT, REPAIR, CHOOSE, SEE],
    states: &[State::Like, State::Need, State::Have],
    places: INDOORS,
    role: Role::Goods,
    senses: Senses::Usual,
};
