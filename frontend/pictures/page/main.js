// main.js — puts the parts together: views, folding, picking, keys.
'use strict';

class Page {
  constructor(data) {
    const element = (id) => document.getElementById(id);
    this.canvas = element('canvas');
    this.scene = element('scene');
    this.busy = element('busy');
    this.elk = new Elk(element('elk-worker').textContent);
    this.turn = Promise.resolve();  // the last change of the picture
    this.changes = 0;               // that are under way or wait
    this.viewport = new Viewport(this.canvas, this.scene);
    this.viewport.onChange = (seen) => this.drawing?.cull(seen);
    this.details = new Details(element('details'), (node) => this.goTo(node), () => this.pick(null));
    this.search = new Search(element('query'), element('hits'),
      (node) => this.goTo(node), (found) => this.drawing?.mark('found', found));
    this.runBar = new RunBar(element('run'), this);
    this.views = data.views.map((view) => ({ title: view.title, model: new Model(view) }));
    element('title').textContent = element('title').title = document.title = data.name || 'A graph without a name';
    this.tabs = this.views.map((view) => {
      const tab = document.createElement('button');
      tab.textContent = view.title;
      tab.setAttribute('role', 'tab');
      tab.addEventListener('click', () => this.showView(view));
      return tab;
    });
    if (this.tabs.length > 1) element('views').append(...this.tabs);
    element('unfold').addEventListener('click', () => this.foldAll(false));
    element('fold').addEventListener('click', () => this.foldAll(true));
    element('fit').addEventListener('click', () => this.fit());
    this.canvas.addEventListener('click', (event) => this.onClick(event));
    this.canvas.addEventListener('dblclick', (event) => {
      const node = this.nodeAt(event);
      if (node?.kind === 'box') this.toggle(node);
    });
    window.addEventListener('keydown', (event) => this.onKey(event));
    this.legend(element('legend'));
    this.ready = this.showView(this.views[0]);
  }

  /**
   * Changes of the picture come one after the other: no box folds while it is laid out, and what is
   * clicked on is what is drawn.
   */
  change(action) {
    ++this.changes;
    this.busy.hidden = false;
    const done = this.turn.then(async () => {
      try {
        await action();
      } catch (error) {
        if (error !== Elk.dropped) throw error;
      } finally {
        this.busy.hidden = --this.changes === 0;
      }
    });
    this.turn = done.catch(() => {});
    return done;
  }

  /** The view whose button was pressed last; until it is laid out, the one before stays in sight. */
  showView(view) {
    if (view !== this.wanted) this.elk.drop();
    this.wanted = view;
    this.tabs.forEach((tab, i) => tab.setAttribute('aria-selected', String(this.views[i] === view)));
    return this.change(async () => {
      if (view !== this.wanted) return;
      if (!view.layout) {
        view.model.foldDownTo(150);
        view.layout = new Layout(view.model, this.elk);
      }
      await this.draw(view);
      this.search.setModel(this.model);
      this.runBar.show(this.model);
      this.viewport.fit(this.drawing.size, this.drawing.beginning());
    });
  }

  /** Lays out what has changed, and draws. */
  async draw(view) {
    await view.layout.of(view.model.root);
    if (view !== this.wanted) throw Elk.dropped;
    if (view !== this.view) this.picked = null;
    this.view = view;
    this.model = view.model;
    this.drawing = new Drawing(this.canvas, this.scene, view.model, view.layout);
    this.drawing.show();
    document.getElementById('empty').hidden = view.model.nodes.length > 0;
    this.drawing.cull(this.viewport.seen());
    this.drawing.mark('found', this.search.query.value ? this.search.found : []);
    this.pick(this.picked);
    this.runBar.redraw();
  }

  /** Whether a node is one of the picture, and that stays. */
  isOfPicture(node) {
    return this.view === this.wanted && this.model.nodes[node.id] === node;
  }

  fold(boxes, isFolded) {
    for (const box of boxes) {
      if (box.isFolded === isFolded) continue;
      box.isFolded = isFolded;
      this.view.layout.invalidate(box);
    }
  }

  toggle(box) {
    return this.change(async () => {
      if (!this.isOfPicture(box)) return;
      const before = this.drawing.placeOf(box);
      this.fold([box], !box.isFolded);
      await this.draw(this.view);
      const after = this.drawing.placeOf(box);  // it stays where it was clicked
      this.viewport.move((before.x - after.x) * this.viewport.scale, (before.y - after.y) * this.viewport.scale);
    });
  }

  foldAll(isFolded) {
    return this.change(async () => {
      if (this.view !== this.wanted) return;
      this.fold(this.model.boxes, isFolded);
      await this.draw(this.view);
      this.viewport.fit(this.drawing.size, this.drawing.beginning());
    });
  }

  /** Unfolds what hides a node, picks it, and moves it into sight. */
  goTo(node) {
    return this.change(async () => {
      if (!this.isOfPicture(node)) return;
      const opened = this.model.reveal(node);
      for (const box of opened) this.view.layout.invalidate(box);
      this.picked = node;
      if (opened.length) await this.draw(this.view);
      this.pick(node);
      this.viewport.centre(this.drawing.placeOf(node));
    });
  }

  /** Shows the whole. */
  fit() {
    if (this.drawing) this.viewport.fit(this.drawing.size);
  }

  pick(node) {
    if (!this.drawing) return;
    this.picked = node;
    this.drawing.mark('picked', node ? [node] : []);
    const own = node ? [...node.reads, ...node.readers] : [];
    if (node?.kind === 'box') {
      for (const pill of [...node.inputs, ...node.outputs]) {
        own.push(...[...pill.reads, ...pill.readers].filter((edge) => edge.box === node.parent));
      }
    }
    this.drawing.markEdges(own);
    if (node) this.details.show(this.model, node);
    else this.details.hide();
  }

  nodeAt(event) {
    const group = event.target.closest('.node, .chip');
    return group ? this.drawing.model.nodes[Number(group.dataset.id)] : null;
  }

  onClick(event) {
    if (this.viewport.hasDragged) return;
    const chip = event.target.closest('.chip');
    if (chip) return this.goTo(this.drawing.model.nodes[Number(chip.dataset.id)]);
    const node = this.nodeAt(event);
    if (node && event.target.classList.contains('toggle')) this.toggle(node);
    else this.pick(node);
  }

  onKey(event) {
    if (event.target.type === 'search' && event.key !== 'Escape') return;
    if (event.target.type === 'range' && event.key.startsWith('Arrow')) return;  // steps by itself
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = {
      '/': () => { document.getElementById('query').focus(); event.preventDefault(); },
      'Escape': () => this.pick(null),
      '0': () => this.fit(),
      '+': () => this.viewport.zoom(1.25, this.canvas.clientWidth / 2, this.canvas.clientHeight / 2),
      '-': () => this.viewport.zoom(0.8, this.canvas.clientWidth / 2, this.canvas.clientHeight / 2),
      'ArrowRight': () => this.runBar.step(1),
      'ArrowLeft': () => this.runBar.step(-1),
    }[event.key];
    if (action) action();
  }

  legend(element) {
    for (const [kind, text] of [['data', 'value'], ['capture', 'capture'], ['back', 'next iteration']]) {
      const entry = document.createElement('span');
      const line = svg('svg', { width: 26, height: 8 });
      line.append(svg('path', {
        d: 'M0 4H24', 'marker-end': `url(#head-${kind})`, fill: 'none',
        stroke: { data: '#7b8a9c', capture: '#a3adba', back: '#c2570c' }[kind],
        'stroke-width': kind === 'back' ? 1.9 : 1.2, 'stroke-dasharray': kind === 'capture' ? '4 3' : '',
      }));
      entry.append(line, text);
      element.append(entry);
    }
  }
}

window.page = new Page(JSON.parse(document.getElementById('data').textContent));
