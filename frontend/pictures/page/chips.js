// chips.js — chips: a value's name beside a reader in place of a long line, for values that are
// read everywhere (weights) or far away (residuals in a gradient).
'use strict';

const kChips = {
  readers: 12,  // a value with more readers: chips for all except the nearest two
  some: 4,      // a value with more readers: chips for distant ones
  far: 10,      // distant: more layers than this
  each: 3,      // budget of layers that lines may cross, per node: ELK takes quadratic time for them
};

/** Returns the node of a box's picture that an edge ends at. */
function nodeIn(box, node) {
  return node.isOnBorder && node.parent !== box ? node.parent : node;
}

/** Estimates the layers in which ELK will put nodes: below their makers, and close to their readers. */
function depthsOf(box, nodes, edges) {
  const at = new Map(nodes.map((node) => [node, { depth: 0, waits: 0, makers: new Set(), readers: [] }]));
  for (const edge of edges) {
    let from = at.get(nodeIn(box, edge.from)), to = at.get(nodeIn(box, edge.to));
    if (edge.kind === 'back') [from, to] = [to, from];
    if (from === to) continue;
    from.readers.push(to);
    to.makers.add(from);
    to.waits += 1;
  }
  const order = [...at.values()].filter((place) => !place.waits);
  const isFixed = new Set(nodes.filter((node) => node.isOnBorder).map((node) => at.get(node)));
  for (let i = 0; i < order.length; ++i) {
    for (const reader of order[i].readers) {
      reader.depth = Math.max(reader.depth, order[i].depth + 1);
      if (!--reader.waits) order.push(reader);
    }
  }
  for (const place of order.reverse()) {
    if (!place.readers.length || isFixed.has(place)) continue;
    const lines = [...place.makers].filter((maker) => maker.makers.size).length;
    if (lines > place.readers.length) continue;  // moved down, it would lengthen more lines than it shortens
    place.depth = place.readers.reduce((least, { depth }) => Math.min(least, depth), Infinity) - 1;
  }
  return (node) => at.get(nodeIn(box, node)).depth;
}

/** Returns the edges of a box that get a chip. */
function chipsOf(box, nodes, edges) {
  const depth = depthsOf(box, nodes, edges);
  const byValue = new Map();
  const lines = [];
  for (const edge of edges) {
    const line = { edge, length: Math.abs(depth(edge.to) - depth(edge.from)) };
    lines.push(line);
    if (edge.kind === 'back') continue;
    const key = `${edge.from.id} ${edge.output}`;
    if (!byValue.has(key)) byValue.set(key, []);
    byValue.get(key).push(line);
  }
  const chips = new Set();
  for (const readers of byValue.values()) {
    if (readers.length <= kChips.some) continue;
    readers.sort((a, b) => a.length - b.length);
    for (const { edge, length } of readers.slice(2)) {
      if (readers.length > kChips.readers || length > kChips.far) chips.add(edge);
    }
  }
  const drawn = lines.filter(({ edge }) => !chips.has(edge)).sort((a, b) => b.length - a.length);
  let sum = drawn.reduce((all, { length }) => all + length, 0);
  for (const { edge, length } of drawn) {
    if (length <= kChips.far || sum <= 300 + kChips.each * nodes.length) break;
    if (edge.kind === 'back') continue;
    chips.add(edge);
    sum -= length - 1;
  }
  return chips;
}

/** Returns the text of a chip: "↑ weight". */
function chipText(edge) {
  const name = nodeIn(edge.box, edge.from).label;
  return `↑ ${name.length > 24 ? `${name.slice(0, 23)}…` : name}`;
}
