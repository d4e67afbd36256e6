// model.js — the page's data as objects that refer to each other.
'use strict';

/** Returns a name that fits into the picture: both ends of a long name. The details show the whole. */
function shortName(name) {
  const kMost = 60;
  const letters = [...name];
  if (letters.length <= kMost) return name;
  return [...letters.slice(0, kMost / 2), '…', ...letters.slice(1 - kMost / 2)].join('');
}

/** One view: nodes as a tree of boxes, edges by the box that they run in. */
class Model {
  constructor(data) {
    this.nodes = data.nodes.map((node, id) => ({
      role: 'plain', note: '', types: [], attributes: [], source: '', parent: -1, ...node,
      id, children: [], inputs: [], outputs: [], edges: [], reads: [], readers: [], isFolded: false,
    }));
    this.root = {
      id: -1, kind: 'root', children: [], inputs: [], outputs: [], edges: [], depth: 0,
    };
    for (const node of this.nodes) {
      node.shownLabel = shortName(node.label);
      node.parent = node.parent < 0 ? this.root : this.nodes[node.parent];
      node.depth = node.parent.depth + 1;
      const isOnBorder = (node.kind === 'input' || node.kind === 'output') && node.parent !== this.root;
      if (isOnBorder) node.parent[node.kind + 's'].push(node);
      else node.parent.children.push(node);
      node.isOnBorder = isOnBorder;
    }
    this.edges = data.edges.map((edge) => ({
      kind: 'data', ...edge,
      from: this.nodes[edge.from], to: this.nodes[edge.to],
      box: edge.box < 0 || edge.box === undefined ? this.root : this.nodes[edge.box],
    }));
    for (const edge of this.edges) {
      edge.box.edges.push(edge);
      edge.from.readers.push(edge);
      edge.to.reads.push(edge);
    }
    this.boxes = this.nodes.filter((node) => node.kind === 'box');
    // Boxes come before the nodes in them.
    for (const box of this.boxes) box.opCount = 0;
    for (const node of [...this.nodes].reverse()) {
      if (node.parent === this.root || node.isOnBorder) continue;
      node.parent.opCount += node.kind === 'box' ? node.opCount : 1;
    }
    this.nanoseconds = data.nanoseconds;
    this.run = data.run;
  }

  /** Returns a node's share of the total time; 0 if nothing was counted. */
  share(node) {
    return node.count && this.nanoseconds ? node.count.nanoseconds / this.nanoseconds : 0;
  }

  /** Folds boxes, the innermost first, until at most `most` nodes are visible. */
  foldDownTo(most) {
    const seen = new Map([[this.root, 0]]);  // by box: the number of visible nodes in it
    for (const box of this.boxes) seen.set(box, 0);
    const add = (box, count) => {
      for (; box; box = box.parent) seen.set(box, seen.get(box) + count);
    };
    for (const node of this.nodes) if (!node.isOnBorder) add(node.parent, 1);
    const byDepth = [...this.boxes].sort((a, b) => b.depth - a.depth || b.opCount - a.opCount);
    for (const box of byDepth) {
      const isOneStep = box.role === 'group' || box.role === 'update';
      if (!isOneStep && seen.get(this.root) <= most) continue;
      box.isFolded = true;
      add(box.parent, -seen.get(box));
    }
  }

  /** Returns the folded boxes that hide a node, the outermost first. */
  foldedAround(node) {
    const boxes = [];
    for (let box = node.parent; box !== this.root; box = box.parent) if (box.isFolded) boxes.unshift(box);
    return boxes;
  }

  /** Returns the nodes with texts that contain all words of a query. */
  find(query) {
    const words = query.toLowerCase().split(/\s+/).filter((word) => word);
    if (!words.length) return [];
    return this.nodes.filter((node) => {
      node.text ??= [node.label, node.note, node.role, ...node.types, ...node.attributes.flat(),
        node.source].join(' ').toLowerCase();
      return words.every((word) => node.text.includes(word));
    });
  }
}

/** Prints a time: "12.3 µs". */
function timeText(nanoseconds) {
  for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]]) {
    if (nanoseconds >= size) return `${(nanoseconds / size).toPrecision(3)} ${unit}`;
  }
  return `${Math.round(nanoseconds)} ns`;
}

/** Prints a share: "12 %". */
function shareText(share) {
  return share >= 0.1 ? `${Math.round(share * 100)} %` : `${(share * 100).toFixed(1)} %`;
}
