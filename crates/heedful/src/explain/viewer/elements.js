// Creates elements. Text is added as text nodes only, so text of users and models is never parsed as markup.

const SVG = 'http://www.w3.org/2000/svg';

// make('button', { class: 'word', type: 'button', on: { click } }, 'text', child)
export function make(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

// The same for SVG elements.
export function makeSvg(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value === true) {
      element.setAttribute(name, '');
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// A labelled choice among a few options, as a row of buttons.
export function segmented(label, options, chosen, choose) {
  const group = make('div', { class: 'segmented', role: 'group', 'aria-label': label });
  for (const { value, text, hint, disabled } of options) {
    group.append(make('button', {
      type: 'button',
      'aria-pressed': String(value === chosen),
      'data-value': value,
      title: hint,
      disabled: Boolean(disabled),
      on: { click: () => choose(value) },
    }, text));
  }
  return group;
}

// A labelled choice among many options, as a select element.
export function dropdown(label, options, chosen, choose) {
  const select = make('select', { on: { change: () => choose(select.value) } });
  for (const { value, text } of options) {
    select.append(make('option', { value, selected: String(value) === String(chosen) }, text));
  }
  return make('label', { class: 'dropdown' }, make('span', {}, label), select);
}

// A roving tabindex: arrow keys move among `items`; Tab reaches one of them.
export function roving(container, items, first = 0) {
  const reach = (index) => items.forEach((item, i) => item.setAttribute('tabindex', i === index ? '0' : '-1'));
  reach(first);
  container.addEventListener('focusin', (event) => {
    const index = items.indexOf(event.target);
    if (index >= 0) reach(index);
  });
  container.addEventListener('keydown', (event) => {
    const index = items.indexOf(event.target);
    const last = items.length - 1;
    const next = { ArrowRight: index + 1, ArrowDown: index + 1, ArrowLeft: index - 1, ArrowUp: index - 1, Home: 0, End: last }[event.key];
    if (index < 0 || next === undefined || next < 0 || next > last) return;
    event.preventDefault();
    items[next].focus();
  });
}
