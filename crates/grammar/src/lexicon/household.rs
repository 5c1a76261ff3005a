//! What is in a house, what one wears and eats, and the house itself.

use super::adjectives::*;
use super::verbs::*;
use super::{Class, Role, Senses, State, modifier, noun};

pub(super) const FURNITURE: Class = Class {
    nouns: &[
        noun("把", "椅子", "chair", "chairs"),
        noun("把", "扶手椅", "armchair", "armchairs"),
        noun("张", "桌子", "table", "tables"),
        noun("张", "床", "bed", "beds"),
        noun("张", "沙发", "sofa", "sofas"),
    ],
    opinions: &[EXPENSIVE, CHEAP, BEAUTIFUL, UGLY, ORDINARY, COMFORTABLE],
    statures: &[NEW, OLD, BIG, SMALL],
    colours: COLOURS,
    kinds: &[modifier("木制", "wooden"), modifier("橡木", "oak"), modifier("二手", "used")],
    verbs: &[BUY, SELL, REPAIR, DESIGN, CHOOSE, SEE],
    states: &[State::Like, State::Need, State::Have],
    places: INDOORS,
    role: Role::Goods,
    senses: Senses::Usual,
};

pub(super) const HANDHELD: Class = Class {
    nouns: &[
        noun("把", "雨伞", "umbrella", "umbrellas"),
        noun("把", "刀", "knife", "knives"),
        noun("把", "钥匙", "key", "keys"),
        noun("把", "斧头", "axe", "axes"),
        noun("个", "箱子", "box", "boxes"),
        noun("个", "信封", "envelope", "envelopes"),
        noun("支", "铅笔", "pencil", "pencils"),
    ],
    opinions: &[CHEAP, ORDINARY, PRACTICAL, UGLY],
    statures: &[NEW, OLD, BIG, SMALL],
    colours: COLOURS,
    kinds: &[],
    verbs: &[BUY, SELL, USE, CHOOSE, SEE, FIND],
    states: &[State::Like, State::Need, State::Have],
    places: ON_A_TABLE,
    role: Role::Goods,
    senses: Senses::Usual,
};

pub(super) const CLOTHES: Class = Class {
    nouns: &[
        noun("件", "衬衫", "shirt", "shirts"),
        noun("件", "外套", "coat", "coats"),
        noun("件", "毛衣", "sweater", "sweaters"),
        noun("条", "裙子", "skirt", "skirts"),
        noun("条", "围巾", "scarf", "scarves"),
        noun("条", "围裙", "apron", "aprons"),
        noun("套", "制服", "uniform", "uniforms"),
        noun("套", "西装", "suit", "suits"),
    ],
    opinions: &[EXPENSIVE, CHEAP, BEAUTIFUL, UGLY, ORDINARY, COMFORTABLE],
    statures: &[NEW, OLD],
    colours: COLOURS,
    kinds: &[
        modifier("丝绸", "silk"),
        modifier("纯棉", "cotton"),
        modifier("意大利", "Italian"),
        modifier("法国", "French"),
        modifier("印度", "Indian"),
    ],
    verbs: &[BUY, SELL, DESIGN, WASH, CHOOSE, FIND],
    states: &[State::Like, State::Need, State::Have],
    places: INDOORS,
    role: Role::Goods,
    senses: Senses::Usual,
};

pub(super) const JEWELLERY: Class = Class {
    nouns: &[
        noun("块", "手表", "watch", "watches"),
        noun("枚", "戒指", "ring", "rings"),
        noun("枚", "硬币", "coin", "coins"),
        noun("条", "项链", "necklace", "necklaces"),
    ],
    opinions: &[BEAUTIFUL, UGLY, ORDINARY, UNIQUE],
    statures: &[NEW, OLD],
    colours: &[modifier("金色", "golden"), modifier("银色", "silver")],
    kinds: COUNTRIES,
    verbs: &[BUY, SELL, CHOOSE, ADMIRE, FIND],
    states: &[State::Like, State::Have],
    places: ON_A_TABLE,
    role: Role::Goods,
    senses: Senses::Usual,
};

pub(super) const FOOD: Class = Class {
    nouns: &[
        noun("个", "苹果", "apple", "apples"),
        noun("个", "橙子", "orange", "oranges"),
        noun("个", "鸡蛋", "egg", "eggs"),
        noun("个", "梨", "pear", "pears"),
        noun("个", "洋葱", "onion", "onions"),
        noun("个", "土豆", "potato", "potatoes"),
    ],
    opinions: &[DELICIOUS, FRESH, EXPENSIVE, CHEAP, ORDINARY],
    statures: &[BIG, SMALL],
    colours: RIPE,
    kinds: &[modifier("有机", "organic")],
    verbs: &[BUY, SELL, EAT, WASH, CHOOSE],
    states: &[State::Like, State::Need, State::Have],
    places: &[modifier("桌子上", "on the table"), modifier("厨房里", "in the kitchen")],
    role: Role::Goods,
    senses: Senses::Usual,
};

pub(super) const ROOMS: Class = Class {
    nouns: &[
        noun("套", "公寓", "apartment", "apartments"),
        noun("间", "办公室", "office", "offices"),
        noun("间", "厨房", "kitchen", "kitchens"),
        noun("间", "教室", "classroom", "classrooms"),
    ],
    opinions: &[CLEAN, QUIET, COMFORTABLE, BEAUTIFUL, ORDINARY, UGLY],
    statures: &[NEW, OLD, BIG, SMALL],
    colours: &[],
    kinds: &[],
    verbs: &[RENT, DESIGN, CHOOSE, VISIT, FIND],
    states: &[State::Like, State::Need],
    places: &[],
    role: Role::Belonging,
    senses: Senses::Usual,
};

pub(super) const BUILDINGS: Class = Class {
    nouns: &[
        noun("座", "房子", "house", "houses"),
        noun("座", "图书馆", "library", "libraries"),
        noun("座", "博物馆", "museum", "museums"),
        noun("座", "机场", "airport", "airports"),
        noun("座", "桥", "bridge", "bridges"),
        noun("座", "体育馆", "arena", "arenas"),
    ],
    opinions: &[BEAUTIFUL, UGLY, FAMOUS, ORDINARY, UNIQUE],
    statures: &[NEW, OLD, BIG, SMALL],
    colours: PLAIN_COLOURS,
    kinds: &[],
    verbs: &[DESIGN, PLAN, VISIT, DRAW, SEE],
    states: &[State::Like, State::Need],
    places: IN_TOWN,
    role: Role::Unowned,
    senses: Senses::Usual,
};
