//! Adjectives, colours, countries.

use super::{Modifier, Opinion, modifier, opinion};

pub(in super::super) const EXPENSIVE: Opinion =
    Opinion { attributive: "昂贵", predicative: "贵", english: "expensive" };
pub(super) const FAMOUS: Opinion =
    Opinion { attributive: "著名", predicative: "有名", english: "famous" };

pub(super) const ADVANCED: Opinion = opinion("先进", "advanced");
pub(super) const BEAUTIFUL: Opinion = opinion("漂亮", "beautiful");
pub(super) const BORING: Opinion = opinion("无聊", "boring");
pub(super) const CHEAP: Opinion = opinion("便宜", "cheap");
pub(super) const CLEAN: Opinion = opinion("干净", "clean");
pub(super) const COMFORTABLE: Opinion = opinion("舒适", "comfortable");
pub(super) const COMPLEX: Opinion = opinion("复杂", "complex");
pub(super) const DELICIOUS: Opinion = opinion("好吃", "delicious");
pub(super) const EFFICIENT: Opinion = opinion("高效", "efficient");
pub(super) const EXCELLENT: Opinion = opinion("优秀", "excellent");
pub(super) const EXPERIENCED: Opinion = opinion("有经验", "experienced");
pub(super) const FRESH: Opinion = opinion("新鲜", "fresh");
pub(super) const HONEST: Opinion = opinion("诚实", "honest");
pub(super) const IMPORTANT: Opinion = opinion("重要", "important");
pub(super) const INTELLIGENT: Opinion = opinion("聪明", "intelligent");
pub(super) const INTERESTING: Opinion = opinion("有趣", "interesting");
pub(super) const KIND: Opinion = opinion("善良", "kind");
pub(super) const LOVELY: Opinion = opinion("可爱", "lovely");
pub(super) const ORDINARY: Opinion = opinion("普通", "ordinary");
pub(super) const PRACTICAL: Opinion = opinion("实用", "practical");
pub(super) const QUIET: Opinion = opinion("安静", "quiet");
pub(super) const RELIABLE: Opinion = opinion("可靠", "reliable");
pub(super) const SIMPLE: Opinion = opinion("简单", "simple");
pub(super) const UGLY: Opinion = opinion("难看", "ugly");
pub(super) const UNFORGETTABLE: Opinion = opinion("难忘", "unforgettable");
pub(super) const UNIQUE: Opinion = opinion("独特", "unique");
pub(super) const USEFUL: Opinion = opinion("有用", "useful");
pub(super) const YOUNG: Opinion = opinion("年轻", "young");

pub(super) const BIG: Modifier = modifier("大", "big");
pub(super) const SMALL: Modifier = modifier("小", "small");
pub(super) const NEW: Modifier = modifier("新", "new");
pub(super) const OLD: Modifier = modifier("旧", "old");

pub(super) const COLOURS: &[Modifier] = &[
    modifier("红色", "red"),
    modifier("橙色", "orange"),
    modifier("黄色", "yellow"),
    modifier("绿色", "green"),
    modifier("蓝色", "blue"),
    modifier("白色", "white"),
    modifier("黑色", "black"),
    modifier("灰色", "gray"),
    modifier("银色", "silver"),
];
pub(super) const PLAIN_COLOURS: &[Modifier] = &[
    modifier("白色", "white"),
    modifier("黑色", "black"),
    modifier("灰色", "gray"),
    modifier("棕色", "brown"),
];
pub(super) const RIPE: &[Modifier] =
    &[modifier("红色", "red"), modifier("黄色", "yellow"), modifier("绿色", "green")];

pub(super) const COUNTRIES: &[Modifier] = &[
    modifier("中国", "Chinese"),
    modifier("美国", "American"),
    modifier("英国", "British"),
    modifier("德国", "German"),
    modifier("法国", "French"),
    modifier("日本", "Japanese"),
    modifier("印度", "Indian"),
    modifier("意大利", "Italian"),
    modifier("欧洲", "European"),
    modifier("澳大利亚", "Australian"),
];
pub(super) const CONTINENTS: &[Modifier] =
    &[modifier("非洲", "African"), modifier("亚洲", "Asian"), modifier("欧洲", "European")];
