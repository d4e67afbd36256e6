// details.js — the panel with the details of the selected node.
'use strict';

class Details {
  constructor(element, onPick, onClose) {
    Object.assign(this, { element, onPick, onClose });
  }

  hide() { this.element.hidden = true; }

  show(model, node) {
    const add = (name, text, className) => {
      const child = document.createElement(name);
      if (text !== undefined) child.textContent = text;
      if (className) child.className = className;
      this.element.append(child);
      return child;
    };
    const section = (title, ...lines) => {
      add('h3', title[0].toUpperCase() + title.slice(1));
      for (const line of lines) add('p', line, 'mono');
    };
    this.element.replaceChildren();
    this.element.hidden = false;
    const close = add('button', '×', 'close');
    close.title = 'Close (Esc)';
    close.addEventListener('click', this.onClose);
    add('h2', node.label);
    const what = { op: 'op', box: node.role, input: 'input', output: 'output' }[node.kind];
    const where = node.parent.kind === 'box' ? ` of ${node.parent.label}` : '';
    add('p', node.isOnBorder ? `${node.role} ${what}${where}` : what + (where && ` in${where.slice(3)}`), 'soft');
    if (node.note) section('Runs', node.note);
    const types = node.kind === 'box' ? node.outputs.map((pill) => pill.types[0] || '') : node.types;
    if (types.length) section(types.length > 1 ? 'Gives' : 'Type', ...types);
    for (const [name, value] of node.attributes) section(name, value);
    if (node.source) {
      add('h3', 'Source');
      add('p', node.source, 'mono source');
    }
    if (node.count) {
      const { calls, nanoseconds } = node.count;
      add('h3', 'Time');
      add('p', `${timeText(nanoseconds)} in ${calls.toLocaleString('en')} ${calls === 1 ? 'call' : 'calls'}` +
          `, ${shareText(model.share(node))} of all`, 'mono count');
      if (calls > 1) add('p', `${timeText(nanoseconds / calls)} a call`, 'mono');
    }
    this.activations = null;
    if (model.tokens?.kind.has(node)) {
      add('h3', 'Activations');
      this.activations = { element: add('p', '', 'mono activations'), tokens: model.tokens, node };
      this.update();
    }
    this.neighbours(section, add, 'Reads', this.makersOf(node));
    this.neighbours(section, add, 'Read by', this.readersOf(node));
  }

  /** Updates the number of activations up to the slider's step. */
  update() {
    if (!this.activations) return;
    const { element, tokens, node } = this.activations;
    const { live, dead } = tokens.counts.get(node) ?? { live: 0, dead: 0 };
    element.textContent = `${live} up to this step${dead ? `, and ${dead} dead` : ''}`;
  }

  makersOf(node) {
    const edges = node.kind === 'box' ? node.inputs.flatMap((pill) => pill.reads).filter((edge) => edge.box === node.parent) : node.reads;
    return edges.map((edge) => [edge.from, edge]);
  }

  readersOf(node) {
    const edges = node.kind === 'box' ? node.outputs.flatMap((pill) => pill.readers) : node.readers;
    return edges.filter((edge) => node.kind !== 'box' || edge.box === node.parent).map((edge) => [edge.to, edge]);
  }

  neighbours(section, add, title, all) {
    if (!all.length) return;
    add('h3', title);
    const list = add('ul');
    for (const [node, edge] of all.slice(0, 40)) {
      const item = document.createElement('li');
      const link = document.createElement('a');
      const name = node.isOnBorder ? `${node.parent.label}: ${node.label}` : node.label;
      link.textContent = edge.kind === 'back' ? `${name} (next iteration)` : name;
      link.addEventListener('click', () => this.onPick(node));
      const type = edge.from.types[edge.output] || '';
      item.append(link, ' ');
      if (type) item.append(Object.assign(document.createElement('code'), { textContent: type }));
      list.append(item);
    }
    if (all.length > 40) add('p', `and ${all.length - 40} more`);
  }
}
