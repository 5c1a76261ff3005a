// Example texts. A model of a training run has its own, from its validation set; others have these.

import { make } from './elements.js';

const BY_LANGUAGE = {
  ar: ['القطة تنام على الكرسي.', 'أين أقرب محطة قطار؟'],
  cs: ['Pes běží po louce.', 'Kde je nejbližší nádraží?'],
  de: ['Ein Hund läuft durch den Schnee.', 'Wo ist der nächste Bahnhof?', 'Zwei Kinder spielen am Strand mit einem Ball.'],
  en: ['A dog runs through the snow.', 'Where is the nearest train station?', 'Two children play with a ball on the beach.'],
  es: ['Un perro corre por la nieve.', '¿Dónde está la estación más cercana?'],
  fr: ['Un chien court dans la neige.', 'Où est la gare la plus proche ?'],
  he: ['כלב רץ בשלג.', 'איפה תחנת הרכבת הקרובה?'],
  ja: ['犬が雪の中を走っています。', '一番近い駅はどこですか。'],
  ru: ['Собака бежит по снегу.', 'Где ближайший вокзал?'],
  zh: ['一套自动驾驶解决方案', '一只狗在雪地里奔跑。', '最近的火车站在哪里？'],
};

export function examplesOf(model) {
  const own = model?.examples ?? [];
  return own.length > 0 ? own : (BY_LANGUAGE[model?.source] ?? []);
}

// A row of buttons; `choose(text)` is called with the clicked example.
export function exampleButtons(texts, choose) {
  return make('div', { class: 'examples', role: 'group', 'aria-label': 'Examples', hidden: texts.length === 0 },
    make('span', { class: 'soft', 'aria-hidden': 'true' }, 'Try'),
    texts.map((text) => make('button', { type: 'button', class: 'chip', dir: 'auto', on: { click: () => choose(text) } }, text)));
}
