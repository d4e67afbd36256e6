// search.js — finds nodes by words.
'use strict';

class Search {
  constructor(query, hits, onPick, onFound) {
    Object.assign(this, { query, hits, onPick, onFound, found: [], at: -1 });
    query.addEventListener('input', () => this.update());
    query.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') { this.clear(); query.blur(); }
      if (!this.found.length) return;
      const step = { ArrowDown: 1, ArrowUp: -1, Enter: event.shiftKey ? -1 : 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const before = this.at < 0 && step < 0 ? 0 : this.at;  // going back from no selection selects the last
      this.at = (before + step + this.found.length) % this.found.length;
      this.list();
      this.onPick(this.found[this.at]);
    });
    query.addEventListener('blur', () => { hits.hidden = true; });
    query.addEventListener('focus', () => this.list());
    hits.addEventListener('mousedown', (event) => event.preventDefault());  // the search field keeps the focus
  }

  setModel(model) {
    this.model = model;
    if (this.query.value) this.update();
  }

  clear() {
    this.query.value = '';
    this.update();
  }

  update() {
    this.found = this.model ? this.model.find(this.query.value) : [];
    this.at = -1;
    this.list();
    this.onFound(this.found);
  }

  list() {
    const kMost = 60;
    this.hits.hidden = !this.query.value || document.activeElement !== this.query;
    const first = Math.max(0, Math.min(this.at - kMost / 2, this.found.length - kMost));
    const items = this.found.slice(first, first + kMost).map((node, i) => {
      const item = document.createElement('li');
      item.append(node.shownLabel);
      const small = document.createElement('small');
      const path = [];
      for (let box = node.parent; box.kind === 'box'; box = box.parent) path.unshift(box.shownLabel);
      small.textContent = [path.join(' › '), node.types.join(', ')].filter((x) => x).join(' · ');
      item.append(small);
      if (first + i === this.at) item.setAttribute('aria-selected', 'true');
      item.addEventListener('click', () => {
        this.at = first + i;
        this.query.blur();
        this.onPick(node);
      });
      return item;
    });
    if (this.found.length > items.length || !this.found.length) {
      const item = document.createElement('li');
      item.textContent = this.found.length ? `${this.found.length} in all` : 'Nothing found';
      items.push(item);
    }
    this.hits.replaceChildren(...items);
    this.hits.querySelector('[aria-selected]')?.scrollIntoView({ block: 'nearest' });
  }
}
