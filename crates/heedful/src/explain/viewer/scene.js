// A picture as a list of shapes, which can be written as SVG or painted on a canvas, for downloads. PNGs are painted
// instead of loaded from the SVG, because the content security policy forbids foreign images.

import { direction } from './text-direction.js';

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif";
const PNG_SCALE = 2;
// Browsers refuse much larger canvases.
const PNG_LIMIT = 12000;

export class Scene {
  constructor(width, height, background) {
    Object.assign(this, { width: Math.ceil(width), height: Math.ceil(height), background, things: [] });
  }

  rect(x, y, width, height, fill, title = '', round = 0) {
    this.things.push({ is: 'rect', x, y, width, height, fill, title, round });
  }

  // anchor: start (left), middle or end (right), independent of text direction; turn: degrees around (x, y).
  text(x, y, text, { size = 13, fill, anchor = 'start', turn = 0, weight = 400 }) {
    this.things.push({ is: 'text', x, y, text: printable(text), size, fill, anchor, turn, weight });
  }

  // A cubic Bézier curve from [x, y] to [x, y] with two control points.
  curve(points, stroke, width, opacity, dash = '') {
    this.things.push({ is: 'curve', points, stroke, width, opacity, dash });
  }

  // All shapes of another picture, shifted. Texts stay in front.
  add(other, dx, dy) {
    this.things.push(...other.things.map((thing) => MOVERS[thing.is](thing, dx, dy)));
  }

  toSvg() {
    const { width, height } = this;
    const body = this.things.map((thing) => WRITERS[thing.is](thing)).join('\n');
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="${FONT}">\n`
      + `<rect width="${width}" height="${height}" fill="${this.background}"/>\n${body}\n</svg>\n`;
  }

  // A promise of a PNG.
  toPng() {
    const scale = Math.min(PNG_SCALE, PNG_LIMIT / Math.max(this.width, this.height));
    const canvas = document.createElement('canvas');
    canvas.width = Math.ceil(this.width * scale);
    canvas.height = Math.ceil(this.height * scale);
    const context = canvas.getContext('2d');
    context.scale(scale, scale);
    context.fillStyle = this.background;
    context.fillRect(0, 0, this.width, this.height);
    for (const thing of this.things) PAINTERS[thing.is](context, thing);
    return new Promise((resolve) => { canvas.toBlob(resolve, 'image/png'); });
  }
}

export function font(size, weight = 400) {
  return `${weight} ${size}px ${FONT}`;
}

let ruler = null;

export function textWidth(text, size, weight = 400) {
  ruler ??= document.createElement('canvas').getContext('2d');
  ruler.font = font(size, weight);
  return ruler.measureText(text).width;
}

// Truncates text wider than `limit` with an ellipsis.
export function shortened(text, size, limit) {
  if (textWidth(text, size) <= limit) return text;
  const characters = [...text];
  while (characters.length > 1 && textWidth(`${characters.join('')}…`, size) > limit) characters.pop();
  return `${characters.join('')}…`;
}

const WRITERS = {
  rect: ({ x, y, width, height, fill, title, round }) => {
    const open = `<rect x="${number(x)}" y="${number(y)}" width="${number(width)}" height="${number(height)}"${round ? ` rx="${round}"` : ''} fill="${fill}"`;
    return title ? `${open}><title>${escaped(title)}</title></rect>` : `${open}/>`;
  },
  text: ({ x, y, text, size, fill, anchor, turn, weight }) => {
    const place = turn ? `transform="translate(${number(x)} ${number(y)}) rotate(${turn})"` : `x="${number(x)}" y="${number(y)}"`;
    // For right-to-left text, the start is on the right.
    const rtl = direction(text) === 'rtl';
    const side = rtl ? { start: 'end', middle: 'middle', end: 'start' }[anchor] : anchor;
    return `<text ${place} font-size="${size}" font-weight="${weight}" text-anchor="${side}"${rtl ? ' direction="rtl"' : ''} fill="${fill}">${escaped(text)}</text>`;
  },
  curve: ({ points: [a, b, c, d], stroke, width, opacity, dash }) => {
    const path = `M${pair(a)}C${pair(b)} ${pair(c)} ${pair(d)}`;
    return `<path d="${path}" fill="none" stroke="${stroke}" stroke-width="${number(width)}" stroke-opacity="${number(opacity)}"${dash ? ` stroke-dasharray="${dash}"` : ''} stroke-linecap="round"/>`;
  },
};

const PAINTERS = {
  rect: (context, { x, y, width, height, fill, round }) => {
    context.fillStyle = fill;
    context.beginPath();
    context.roundRect(x, y, width, height, round);
    context.fill();
  },
  text: (context, { x, y, text, size, fill, anchor, turn, weight }) => {
    context.save();
    context.translate(x, y);
    context.rotate((turn * Math.PI) / 180);
    context.font = font(size, weight);
    context.textAlign = { start: 'left', middle: 'center', end: 'right' }[anchor];
    context.direction = direction(text);
    context.fillStyle = fill;
    context.fillText(text, 0, 0);
    context.restore();
  },
  curve: (context, { points: [a, b, c, d], stroke, width, opacity, dash }) => {
    context.save();
    context.setLineDash(dash ? dash.split(' ').map(Number) : []);
    context.globalAlpha = opacity;
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.lineCap = 'round';
    context.beginPath();
    context.moveTo(...a);
    context.bezierCurveTo(...b, ...c, ...d);
    context.stroke();
    context.restore();
  },
};

const MOVERS = {
  rect: (thing, dx, dy) => ({ ...thing, x: thing.x + dx, y: thing.y + dy }),
  text: (thing, dx, dy) => ({ ...thing, x: thing.x + dx, y: thing.y + dy }),
  curve: (thing, dx, dy) => ({ ...thing, points: thing.points.map(([x, y]) => [x + dx, y + dy]) }),
};

function number(value) {
  return String(Math.round(value * 100) / 100);
}

function pair([x, y]) {
  return `${number(x)} ${number(y)}`;
}

function escaped(text) {
  const names = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.replace(/[&<>"']/g, (sign) => names[sign]);
}

// XML forbids control characters, even escaped.
function printable(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\ufffe\uffff]/g, '\ufffd');
}
