// Names of languages and models.

export function languageName(code) {
  if (!code || code === 'und') return '';
  try {
    return new Intl.DisplayNames(['en'], { type: 'language' }).of(code);
  } catch {
    return code;
  }
}

// “Chinese to English”, or the model's name if its languages are unknown.
export function modelLabel({ name, source, target }) {
  const [from, to] = [languageName(source), languageName(target)];
  return from && to ? `${from} to ${to}` : name;
}

// Labels for a list of models, with their names where two labels would be equal.
export function modelOptions(models) {
  const labels = models.map(modelLabel);
  return models.map(({ name }, i) => ({ value: name, text: labels.indexOf(labels[i]) !== labels.lastIndexOf(labels[i]) ? `${labels[i]} (${name})` : labels[i] }));
}
