//! Vehicles, technology, devices.

use super::adjectives::*;
use super::verbs::*;
use super::{Class, Modifier, Noun, Role, Senses, State, modifier, noun};

pub(super) const CARS: Class = Class {
    nouns: &[
        Noun { measure: "辆", chinese: "车", compound: "汽车", singular: "car", plural: "cars" },
        noun("辆", "卡车", "truck", "trucks"),
        noun("辆", "公交车", "bus", "buses"),
        noun("辆", "出租车", "taxi", "taxis"),
        noun("辆", "越野车", "SUV", "SUVs"),
        noun("辆", "救护车", "ambulance", "ambulances"),
    ],
    opinions: &[EXPENSIVE, CHEAP, BEAUTIFUL, UGLY, ORDINARY, RELIABLE, COMFORTABLE, UNIQUE],
    statures: &[NEW, OLD],
    colours: COLOURS,
    kinds: &[
        modifier("无人驾驶", "self-driving"),
        modifier("电动", "electric"),
        modifier("二手", "used"),
        modifier("中国", "Chinese"),
        modifier("美国", "American"),
        modifier("德国", "German"),
        modifier("日本", "Japanese"),
        modifier("意大利", "Italian"),
        modifier("欧洲", "European"),
    ],
    verbs: &[BUY, SELL, RENT, REPAIR, DESIGN, TEST, WASH, SEE],
    states: &[State::Like, State::Need, State::Have],
    places: OUTDOORS,
    role: Role::Goods,
    senses: Senses::Usual,
};

pub(super) const CYCLES: Class = Class {
    nouns: &[noun("辆", "自行车", "bicycle", "bicycles"), noun("辆", "摩托车", "motorcycle", "motorcycles")],
    kinds: &[
        modifier("电动", "electric"),
        modifier("二手", "used"),
        modifier("中国", "Chinese"),
        modifier("意大利", "Italian"),
    ],
    ..CARS
};

pub(super) const CRAFT: Class = Class {
    nouns: &[
        noun("架", "飞机", "airplane", "airplanes"),
        noun("架", "直升机", "helicopter", "helicopters"),
        noun("艘", "船", "ship", "ships"),
        noun("艘", "破冰船", "icebreaker", "icebreakers"),
        noun("列", "火车", "train", "trains"),
    ],
    opinions: &[EXPENSIVE, RELIABLE, COMFORTABLE, ORDINARY, ADVANCED, UGLY],
    statures: &[NEW, OLD, BIG, SMALL],
    colours: COLOURS,
    kinds: COUNTRIES,
    verbs: &[DESIGN, TEST, REPAIR, DRAW, SEE],
    states: &[State::Like, State::Need],
    places: &[],
    role: Role::Unowned,
    senses: Senses::Usual,
};

const FIELDS: &[Modifier] = &[
    modifier("自动驾驶", "autonomous driving"),
    modifier("人工智能", "artificial intelligence"),
    modifier("机器翻译", "machine translation"),
    modifier("语音识别", "speech recognition"),
    modifier("图像处理", "image processing"),
    modifier("数据分析", "data analysis"),
    modifier("云计算", "cloud computing"),
    modifier("储能", "energy storage"),
    modifier("在线支付", "online payment"),
    modifier("在线教育", "online education"),
    modifier("信息安全", "information security"),
    modifier("城市交通", "urban traffic"),
    modifier("办公自动化", "office automation"),
    modifier("用户管理", "user management"),
    modifier("统一通信", "unified communication"),
    modifier("一站式购物", "one-stop shopping"),
    modifier("工业设计", "industrial design"),
    modifier("环境监测", "environmental monitoring"),
    modifier("应急救援", "emergency rescue"),
    modifier("智能家居", "smart home"),
    modifier("物流管理", "logistics management"),
];

pub(super) const TECHNOLOGY: Class = Class {
    nouns: &[
        noun("套", "解决方案", "solution", "solutions"),
        noun("套", "系统", "system", "systems"),
        noun("个", "平台", "platform", "platforms"),
        noun("个", "项目", "project", "projects"),
        noun("款", "产品", "product", "products"),
        noun("款", "应用", "app", "apps"),
        noun("项", "服务", "service", "services"),
    ],
    opinions: &[
        ADVANCED, EFFICIENT, RELIABLE, PRACTICAL, UNIQUE, IMPORTANT, EXPENSIVE, CHEAP, SIMPLE, COMPLEX,
        ORDINARY,
    ],
    statures: &[NEW],
    colours: &[],
    kinds: FIELDS,
    verbs: &[BUY, SELL, DEVELOP, DESIGN, TEST, USE, CHOOSE, DISCUSS],
    states: &[State::Like, State::Need, State::Have],
    places: &[],
    role: Role::Goods,
    senses: Senses::Usual,
};

pub(super) const DEVICES: Class = Class {
    nouns: &[
        noun("台", "电脑", "computer", "computers"),
        noun("台", "相机", "camera", "cameras"),
        noun("台", "冰箱", "refrigerator", "refrigerators"),
        noun("台", "空调", "air conditioner", "air conditioners"),
        noun("台", "洗衣机", "washing machine", "washing machines"),
        noun("台", "烤箱", "oven", "ovens"),
        noun("台", "打印机", "printer", "printers"),
        noun("台", "X光机", "X-ray machine", "X-ray machines"),
        noun("台", "机器人", "robot", "robots"),
        noun("部", "手机", "phone", "phones"),
        noun("部", "电梯", "elevator", "elevators"),
    ],
    opinions: &[EXPENSIVE, CHEAP, RELIABLE, ADVANCED, EFFICIENT, PRACTICAL, ORDINARY, UGLY],
    statures: &[NEW, OLD],
    colours: COLOURS,
    kinds: &[
        modifier("智能", "smart"),
        modifier("二手", "used"),
        modifier("中国", "Chinese"),
        modifier("美国", "American"),
        modifier("德国", "German"),
        modifier("日本", "Japanese"),
        modifier("欧洲", "European"),
    ],
    verbs: &[BUY, SELL, REPAIR, DESIGN, TEST, USE, CHOOSE, FIND],
    states: &[State::Like, State::Need, State::Have],
    places: INDOORS,
    role: Role::Goods,
    senses: Senses::Usual,
};
