//! What one does with things, and where they are found.

use super::{Modifier, Verb, action, event, modifier};

pub(super) const ADMIRE: Verb = action("欣赏", "admire", "admired", "admiring");
pub(super) const BUY: Verb = action("买", "buy", "bought", "buying");
pub(super) const CALCULATE: Verb = action("计算", "calculate", "calculated", "calculating");
pub(super) const CHOOSE: Verb = action("选择", "choose", "chose", "choosing");
pub(super) const DERIVE: Verb = action("推导", "derive", "derived", "deriving");
pub(super) const DESIGN: Verb = action("设计", "design", "designed", "designing");
pub(super) const DEVELOP: Verb = action("开发", "develop", "developed", "developing");
pub(super) const DILUTE: Verb = action("稀释", "dilute", "diluted", "diluting");
pub(super) const DISCUSS: Verb = action("讨论", "discuss", "discussed", "discussing");
pub(super) const DRAW: Verb = action("画", "draw", "drew", "drawing");
pub(super) const EAT: Verb = action("吃", "eat", "ate", "eating");
pub(super) const FEED: Verb = action("喂", "feed", "fed", "feeding");
pub(super) const FILTER: Verb = action("过滤", "filter", "filtered", "filtering");
pub(super) const HEAT: Verb = action("加热", "heat", "heated", "heating");
pub(super) const HELP: Verb = action("帮助", "help", "helped", "helping");
pub(super) const PLAN: Verb = action("规划", "plan", "planned", "planning");
pub(super) const READ: Verb = action("读", "read", "read", "reading");
pub(super) const RENT: Verb = action("租", "rent", "rented", "renting");
pub(super) const REPAIR: Verb = action("修理", "repair", "repaired", "repairing");
pub(super) const SELL: Verb = action("卖", "sell", "sold", "selling");
pub(super) const TEST: Verb = action("测试", "test", "tested", "testing");
pub(super) const USE: Verb = action("使用", "use", "used", "using");
pub(super) const VERIFY: Verb = action("验证", "verify", "verified", "verifying");
pub(super) const VISIT: Verb = action("参观", "visit", "visited", "visiting");
pub(super) const WASH: Verb = action("洗", "wash", "washed", "washing");
pub(super) const WRITE: Verb = action("写", "write", "wrote", "writing");

pub(super) const FIND: Verb = event("找到", "find", "found");
pub(super) const MEET: Verb = event("遇见", "meet", "met");
pub(super) const SEE: Verb = event("看见", "see", "saw");

const CITY: Modifier = modifier("城里", "in the city");
const GARDEN: Modifier = modifier("花园里", "in the garden");
const ROOM: Modifier = modifier("房间里", "in the room");
const STREET: Modifier = modifier("街上", "on the street");
const TABLE: Modifier = modifier("桌子上", "on the table");
const DRAWER: Modifier = modifier("抽屉里", "in the drawer");
const VILLAGE: Modifier = modifier("村里", "in the village");
const DOOR: Modifier = modifier("门口", "at the door");

pub(super) const IN_TOWN: &[Modifier] = &[CITY, VILLAGE];
pub(super) const INDOORS: &[Modifier] = &[ROOM];
pub(super) const ON_A_TABLE: &[Modifier] = &[ROOM, TABLE, DRAWER];
pub(super) const OUTDOORS: &[Modifier] = &[STREET, DOOR, VILLAGE];
pub(super) const AMONG_PLANTS: &[Modifier] = &[GARDEN, VILLAGE];
pub(super) const AMONG_PEOPLE: &[Modifier] = &[ROOM, DOOR, VILLAGE];
