//! People, what they found, animals, and the land.

use super::adjectives::*;
use super::verbs::*;
use super::{Class, Role, Senses, State, modifier, noun};

pub(super) const FIRMS: Class = Class {
    nouns: &[
        noun("家", "公司", "company", "companies"),
        noun("家", "医院", "hospital", "hospitals"),
        noun("家", "酒店", "hotel", "hotels"),
        noun("家", "餐厅", "restaurant", "restaurants"),
        noun("家", "银行", "bank", "banks"),
        noun("家", "工厂", "factory", "factories"),
        noun("家", "商店", "shop", "shops"),
        noun("家", "航空公司", "airline", "airlines"),
    ],
    opinions: &[FAMOUS, ORDINARY, EXCELLENT, RELIABLE, EXPENSIVE],
    statures: &[NEW, BIG, SMALL],
    colours: &[],
    kinds: &[
        modifier("国际", "international"),
        modifier("本地", "local"),
        modifier("中国", "Chinese"),
        modifier("美国", "American"),
        modifier("印度", "Indian"),
        modifier("欧洲", "European"),
    ],
    verbs: &[CHOOSE, VISIT, FIND],
    states: &[State::Like, State::Need],
    places: IN_TOWN,
    role: Role::Unowned,
    senses: Senses::Usual,
};

pub(super) const SCHOOLS: Class = Class {
    nouns: &[
        noun("所", "学校", "school", "schools"),
        noun("所", "大学", "university", "universities"),
        noun("所", "学院", "academy", "academies"),
    ],
    opinions: &[FAMOUS, ORDINARY, EXCELLENT],
    statures: &[NEW],
    colours: &[],
    kinds: &[
        modifier("国际", "international"),
        modifier("公立", "public"),
        modifier("私立", "private"),
        modifier("艺术", "art"),
    ],
    verbs: &[CHOOSE, VISIT, FIND],
    states: &[State::Like, State::Need],
    places: IN_TOWN,
    role: Role::Unowned,
    senses: Senses::Usual,
};

pub(super) const PEOPLE: Class = Class {
    nouns: &[
        noun("位", "医生", "doctor", "doctors"),
        noun("位", "眼科医生", "eye doctor", "eye doctors"),
        noun("位", "工程师", "engineer", "engineers"),
        noun("位", "老师", "teacher", "teachers"),
        noun("位", "艺术家", "artist", "artists"),
        noun("位", "演员", "actor", "actors"),
        noun("位", "律师", "lawyer", "lawyers"),
        noun("位", "科学家", "scientist", "scientists"),
        noun("位", "建筑师", "architect", "architects"),
        noun("名", "学生", "student", "students"),
        noun("名", "护士", "nurse", "nurses"),
        noun("名", "运动员", "athlete", "athletes"),
    ],
    opinions: &[HONEST, YOUNG, FAMOUS, ORDINARY, EXPERIENCED, INTELLIGENT, KIND, EXCELLENT],
    statures: &[],
    colours: &[],
    kinds: COUNTRIES,
    verbs: &[HELP, MEET, SEE],
    states: &[State::Like, State::Need],
    places: AMONG_PEOPLE,
    role: Role::Person,
    senses: Senses::Usual,
};

pub(super) const ANIMALS: Class = Class {
    nouns: &[
        noun("只", "狗", "dog", "dogs"),
        noun("只", "猫", "cat", "cats"),
        noun("只", "鸟", "bird", "birds"),
        noun("只", "兔子", "rabbit", "rabbits"),
        noun("只", "老鼠", "mouse", "mice"),
        noun("只", "羊", "sheep", "sheep"),
        noun("只", "鹅", "goose", "geese"),
        noun("只", "猫头鹰", "owl", "owls"),
        noun("条", "鱼", "fish", "fish"),
        noun("条", "蛇", "snake", "snakes"),
    ],
    opinions: &[LOVELY, UGLY, ORDINARY, INTELLIGENT, QUIET],
    statures: &[SMALL, BIG],
    colours: PLAIN_COLOURS,
    kinds: CONTINENTS,
    verbs: &[FEED, DRAW, SEE, FIND],
    states: &[State::Like, State::Have],
    places: AMONG_PLANTS,
    role: Role::Belonging,
    senses: Senses::Usual,
};

pub(super) const LARGE_ANIMALS: Class = Class {
    nouns: &[
        noun("头", "大象", "elephant", "elephants"),
        noun("头", "牛", "cow", "cows"),
        noun("匹", "马", "horse", "horses"),
    ],
    opinions: &[LOVELY, BEAUTIFUL, ORDINARY, INTELLIGENT, QUIET],
    statures: &[],
    colours: PLAIN_COLOURS,
    kinds: CONTINENTS,
    verbs: &[FEED, DRAW, SEE, WASH],
    states: &[State::Like, State::Have],
    places: AMONG_PLANTS,
    role: Role::Belonging,
    senses: Senses::Usual,
};

pub(super) const LAND: Class = Class {
    nouns: &[
        noun("座", "山", "mountain", "mountains"),
        noun("座", "岛", "island", "islands"),
        noun("条", "河", "river", "rivers"),
        noun("条", "路", "road", "roads"),
        noun("片", "湖", "lake", "lakes"),
        noun("片", "森林", "forest", "forests"),
    ],
    opinions: &[BEAUTIFUL, FAMOUS, ORDINARY, QUIET],
    statures: &[BIG, SMALL],
    colours: &[],
    kinds: CONTINENTS,
    verbs: &[DRAW, ADMIRE, SEE, FIND],
    states: &[State::Like],
    places: &[],
    role: Role::Unowned,
    senses: Senses::Usual,
};

pub(super) const PLANTS: Class = Class {
    nouns: &[noun("棵", "树", "tree", "trees"), noun("朵", "花", "flower", "flowers")],
    opinions: &[BEAUTIFUL, ORDINARY, UNIQUE],
    statures: &[BIG, SMALL],
    colours: RIPE,
    kinds: CONTINENTS,
    verbs: &[BUY, DRAW, SEE, FIND],
    states: &[State::Like, State::Need, State::Have],
    places: AMONG_PLANTS,
    role: Role::Belonging,
    senses: Senses::Usual,
};
