"""Values of Reel in gdb and lldb.

gdb:   source reel_debugger.py                  (installed packages: loaded with libreel.so)
lldb:  command script import reel_debugger.py

Prints Tensor, Dim, Dims, TensorType, TensorArray and Graph. It only reads memory: it calls no function
of the program, so it works on core files and while other threads run. The library's constant
`reel_debugger_offsets` (core/debugger/offsets.h) has the offsets of all members, so neither the
library nor the program needs debug information about the types behind a Tensor.
"""

import struct
import sys

MAX_WORDS = 200    # elements; larger tensors show the edges of their axes only. gdb: `set print elements`
MAX_RECORDS = 100  # lines of a graph
MAX_ITEMS = 10     # elements of a TensorArray
MAX_RANK = 64
LINE_WIDTH = 75

DTYPES = [("f32", "<f"), ("f64", "<d"), ("i32", "<i"), ("i64", "<q"), ("boolean", "<B")]
DENSE, VIEW, LIST, PROMISE, STEPS = range(5)              # BlockKind
PLAIN, FIXED, DYNAMIC, RAGGED, UNDEFINED = range(5)       # DimKind
SUM, DIFFERENCE, PRODUCT, QUOTIENT, FLOOR, CEIL = range(6)  # DimOperation


class Damaged(Exception):
    """Memory that is no value of Reel, or that cannot be read."""


class Reader:
    """Reads values of Reel. read(address, size) returns bytes or throws Damaged. max_words: elements of a tensor that is shown in full."""

    def __init__(self, read, table_address, max_words):
        self.read = read
        self.max_words = max_words
        self.offsets = {}
        while True:
            name, value = struct.unpack("<28si", read(table_address + 32 * len(self.offsets), 32))
            name = name.split(b"\0")[0].decode("ascii", "replace")
            if not name or len(self.offsets) > 1000:
                return
            self.offsets[name] = value

    # ---- Memory ----

    def number(self, address, code):
        return struct.unpack(code, self.read(address, struct.calcsize(code)))[0]

    def pointer(self, address):
        return self.number(address, "<Q")

    def member(self, address, name, code="<Q"):
        return self.number(address + self.offsets[name], code)

    def bytes_as_text(self, address, size):
        if size > 10000:
            raise Damaged("a name of %d bytes" % size)
        return self.read(address, size).decode("utf-8", "replace") if size else ""

    def string(self, address):
        return self.bytes_as_text(self.pointer(address), self.pointer(address + 8))

    def vector(self, address, stride, most):
        """Returns the addresses of the items of a std::vector."""
        begin, end = self.pointer(address), self.pointer(address + 8)
        count = (end - begin) // stride
        if end < begin or (end - begin) % stride or count > most:
            raise Damaged("a list from 0x%x to 0x%x" % (begin, end))
        return [begin + stride * i for i in range(count)]

    def numbers(self, address, code, most):
        return [self.number(a, code) for a in self.vector(address, struct.calcsize(code), most)]

    # ---- Dims and types ----

    def dims_at(self, address):
        """Returns (node, size) of each Dim of a Dims."""
        return [(self.pointer(a), self.number(a + 8, "<q"))
                for a in self.vector(address, self.offsets["Dim"], MAX_RANK)]

    def dim_text(self, dim, depth=0):
        node, size = dim
        if size < -1 or depth > 8:
            raise Damaged("a dim of size %d" % size)
        kind = self.member(node, "DimNode.kind", "<B") if node else PLAIN
        if kind > UNDEFINED:
            raise Damaged("a dim of kind %d" % kind)
        if kind == PLAIN:
            return str(size) if size >= 0 else "?"
        text = self.dim_name(node, depth)
        if kind == RAGGED:
            return text + self.dims_text(self.dims_at(node + self.offsets["DimNode.length_dims"]), depth)
        return text + "=%d" % size if size >= 0 else text

    def dims_text(self, dims, depth=0):
        return "[" + ",".join(self.dim_text(dim, depth + 1) for dim in dims) + "]"

    def dim_name(self, node, depth=0):
        expression = self.member(node, "DimNode.expression")
        if not expression:
            return self.string(node + self.offsets["DimNode.name"])
        return self.expression_text(expression, depth + 1)

    def expression_text(self, expression, depth):
        if depth > 8:
            raise Damaged("a dim of endless operands")
        operation = self.member(expression, "DimExpression.operation", "<B")
        number = self.member(expression, "DimExpression.number", "<q")
        nodes = [node for node, _ in self.dims_at(expression + self.offsets["DimExpression.operands"])]
        if not nodes or not all(nodes):
            raise Damaged("a dim without operands")
        texts = [self.operand_text(nodes[0], SUM if operation == CEIL else operation, depth)]
        texts += [self.operand_text(node, SUM, depth) if operation == SUM else self.second_text(node, depth)
                  for node in nodes[1:]]
        if operation == CEIL:
            return "ceildiv(%s,%d)" % (texts[0], number)
        if operation == QUOTIENT and len(nodes) == 1:
            return "%s/Dim(%d)" % (texts[0], number)
        if operation == QUOTIENT and number != 1:
            return "%s/(%s*%d)" % (texts[0], self.operand_text(nodes[1], PRODUCT, depth), number)
        sign = {SUM: "+", DIFFERENCE: "-", PRODUCT: "*", QUOTIENT: "/", FLOOR: "/"}.get(operation, "?")
        neutral = {SUM: 0, PRODUCT: 1, QUOTIENT: 1}.get(operation)
        if number != neutral and not (operation == DIFFERENCE and len(nodes) > 1):
            texts.append(str(number))
        return sign.join(texts)

    def operand_text(self, node, operation, depth):
        """The text of a first operand, as text_of in dim_expression.cpp prints it."""
        inner, text = self.member(node, "DimNode.expression"), self.dim_name(node, depth)
        is_apart = inner and operation >= PRODUCT and self.member(inner, "DimExpression.operation", "<B") <= DIFFERENCE
        return "(" + text + ")" if is_apart else text

    def second_text(self, node, depth):
        inner, text = self.member(node, "DimNode.expression"), self.dim_name(node, depth)
        is_name = not inner or self.member(inner, "DimExpression.operation", "<B") == CEIL
        return text if is_name else "(" + text + ")"

    def type_text(self, node):
        name = self.dtype(node)[0]
        if self.member(node, "TypeNode.is_unranked", "<B"):
            return name + "[...]"
        text = name + self.dims_text(self.dims_at(node + self.offsets["TypeNode.dims"]))
        return "list of " + text if self.member(node, "TypeNode.is_list", "<B") else text

    def dtype(self, type_node):
        dtype = self.member(type_node, "TypeNode.dtype", "<B")
        if dtype >= len(DTYPES):
            raise Damaged("a type with the dtype %d" % dtype)
        return DTYPES[dtype]

    # ---- Tensors ----

    def checked_block(self, block):
        """Returns the kind and the type of a block."""
        kind = self.member(block, "TensorBlock.kind", "<B")
        references = self.member(block, "TensorBlock.refs", "<I")
        if block % 64 or kind > STEPS or references >= 1 << 31:
            raise Damaged("0x%x is no tensor" % block)
        if references == 0:
            raise Damaged("0x%x is a tensor that was freed" % block)
        return kind, self.member(block, "TensorBlock.type")

    def tensor_text(self, block):
        if not block:
            return "(empty Tensor)"
        kind, node = self.checked_block(block)
        text = self.type_text(node)
        if kind == PROMISE:
            return text + ", " + self.promise_text(block)
        if kind == STEPS:
            return text + ", residuals of a loop, most of them not in memory"
        if kind == LIST:
            items = self.list_items(block)
            if self.member(node, "TypeNode.is_unranked", "<B") and items and items[0]:
                return "%s: %s" % (text, self.tensor_text(items[0]))
            return text + self.items_text(items)
        sizes = self.numbers(node + self.offsets["TypeNode.sizes"], "<q", MAX_RANK)
        elements = self.elements_text(block, node, sizes)
        return text + ("\n" if "\n" in elements or len(sizes) > 1 else " ") + elements

    def promise_text(self, block):
        op = self.member(block, "TensorBlock.data")
        recording = self.member(block, "TensorBlock.attachment")
        place = self.string(recording + self.offsets["Recording.place"]) if recording else "a trace"
        if not op:
            return "a promise: an argument of " + place
        return "a promise: the result of %s in %s" % (self.op_name(op), place)

    def op_name(self, op):
        at = op + self.offsets["Op.name"]  # a std::string_view
        return self.bytes_as_text(self.pointer(at + 8), self.pointer(at))

    def elements_text(self, block, node, sizes):
        name, code = self.dtype(node)
        count = 1
        for size in sizes:
            count *= size
        if count != self.member(node, "TypeNode.numel", "<q") or min(sizes, default=0) < 0:
            raise Damaged("a type with %d elements" % count)
        if count == 0:
            return "[]"
        edge = self.edge_of(sizes) if count > self.max_words else None
        data = self.member(block, "TensorBlock.data")
        width = struct.calcsize(code)
        whole = self.read(data, count * width) if edge is None else None
        is_valid = self.valid_elements(node, sizes)

        def word(position, index):
            if not is_valid(index):
                return "-"
            if whole is not None:
                return number_text(struct.unpack_from(code, whole, position * width)[0], name)
            return number_text(self.number(data + position * width, code), name)

        if not sizes:
            return word(0, ())
        shown = [shown_positions(size, edge) for size in sizes]
        words = {}

        def collect(axis, position, index):
            if axis == len(sizes):
                words[index] = word(position, index)
                return
            for i in shown[axis]:
                if i is not None:
                    collect(axis + 1, position * sizes[axis] + i, index + (i,))

        collect(0, 0, ())
        return nested_text(shown, words, max(len(w) for w in words.values()))

    def edge_of(self, sizes):
        for edge in (3, 2, 1):
            shown = 1
            for size in sizes:
                shown *= min(size, 2 * edge)
            if shown <= self.max_words:
                break
        return edge

    def valid_elements(self, node, sizes):
        """Returns a function that is false for the index of padding."""
        dims = self.dims_at(node + self.offsets["TypeNode.dims"])
        ragged = []
        for axis, (dim, _) in enumerate(dims):
            if not dim or self.member(dim, "DimNode.kind", "<B") != RAGGED:
                continue
            lengths = self.member(dim, "DimNode.lengths")
            over = self.dims_at(dim + self.offsets["DimNode.length_dims"])
            if not lengths or self.member(dim, "DimNode.is_full", "<B") or any(d not in dims for d in over):
                continue
            ragged.append((axis, self.member(lengths, "TensorBlock.data"), [dims.index(d) for d in over]))
        known = {}

        def is_valid(index):
            for axis, data, over in ragged:
                at = 0
                for a in over:
                    at = at * sizes[a] + index[a]
                if (axis, at) not in known:
                    known[axis, at] = self.number(data + 4 * at, "<i")
                if index[axis] >= known[axis, at]:
                    return False
            return True

        return is_valid

    # ---- Lists ----

    def list_items(self, block):
        """Returns the blocks of a list's elements, 0 for unwritten ones; their number is not limited."""
        attachment = self.member(block, "TensorBlock.attachment")
        items = attachment + self.offsets["ListData.items"]
        size = self.member(items, "PersistentList.size", "<q")
        height = self.member(items, "PersistentList.height", "<i")
        root = self.member(items, "PersistentList.root")
        if size < 0 or height < 0 or height > 13:
            raise Damaged("a list of %d elements" % size)
        return Items(self, root, height, size)

    def items_text(self, items):
        text = ", 1 element" if len(items) == 1 else ", %d elements" % len(items)
        for i in range(min(len(items), MAX_ITEMS)):
            item = self.tensor_text(items[i]) if items[i] else "not written"
            text += "\n[%d] %s" % (i, item.replace("\n", "\n    "))
        return text + "\n..." if len(items) > MAX_ITEMS else text

    def array_text(self, block):
        if not block:
            return "(empty TensorArray)"
        kind, node = self.checked_block(block)
        text = self.type_text(node)
        if kind == PROMISE:
            return "TensorArray: %s, %s" % (text, self.promise_text(block))
        return "TensorArray: " + self.tensor_text(block)

    # ---- Graphs ----

    def graph_text(self, graph):
        o = self.offsets
        types = self.vector(graph + o["Graph.types"], 8, 1 << 24)
        operands = self.vector(graph + o["Graph.operands"], 4, 1 << 26)
        inputs = self.numbers(graph + o["Graph.inputs"], "<I", 1 << 20)
        records = self.vector(graph + o["Graph.records"], o["OpRecord"], 1 << 24)
        formal = self.member(graph, "Graph.formal_count")
        names = {}

        def name(value):
            return "%%%d" % names.setdefault(value, len(names))

        def typed(value):
            if value >= len(types):
                raise Damaged("a graph without its value %d" % value)
            return "%s: %s" % (name(value), self.type_text(self.pointer(types[value])))

        text = self.string(graph + o["Graph.name"]) + "("
        for i, value in enumerate(inputs):
            text += ("captures " if i == formal else "") if i == 0 else "; captures " if i == formal else ", "
            text += typed(value)
        text += ") {\n"
        for record in records[:MAX_RECORDS]:
            first = self.member(record, "OpRecord.first", "<I")
            split = first + self.member(record, "OpRecord.input_count", "<I")
            end = split + self.member(record, "OpRecord.output_count", "<I")
            if end > len(operands):
                raise Damaged("a graph without its operand %d" % end)
            values = [self.number(a, "<I") for a in operands[first:end]]
            read, made = values[:split - first], values[split - first:]
            text += "  %s = %s(%s)\n" % (", ".join(map(typed, made)), self.op_name(self.member(record, "OpRecord.op")),
                                         ", ".join(map(name, read)))
        if len(records) > MAX_RECORDS:
            text += "  ... %d more\n" % (len(records) - MAX_RECORDS)
        return text + "  return %s\n}" % ", ".join(map(name, self.numbers(graph + o["Graph.outputs"], "<I", 1 << 20)))


class Items:
    """The elements of a PersistentList, a tree of 32 children per node."""

    def __init__(self, reader, root, height, size):
        self.reader, self.root, self.height, self.size = reader, root, height, size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        reader, node = self.reader, self.root
        if index >> (5 * self.height):
            return 0
        for level in range(self.height - 1, -1, -1):
            if not node:
                return 0
            name = "PersistentList.children" if level else "PersistentList.elements"
            slots = reader.vector(node + reader.offsets[name], 8, 32)
            node = reader.pointer(slots[index >> (5 * level) & 31]) if slots else 0
        return node


# ---- Words and brackets ----


def number_text(number, dtype):
    if dtype == "boolean":
        return "True" if number else "False"
    if dtype in ("i32", "i64"):
        return str(number)
    if number != number or number in (float("inf"), float("-inf")):
        return str(number)
    for digits in range(1, 18):
        text = "%.*g" % (digits, number)
        if dtype == "f64" and float(text) == number:
            break
        if dtype == "f32" and digits == 9:
            break
        if dtype == "f32" and abs(float(text)) < 3.4028235e38 and struct.unpack("<f", struct.pack("<f", float(text)))[0] == number:
            break
    if "e" in text and 1e-4 <= abs(number) < 1e8:
        text = "%.0f" % float(text)
    return text if "." in text or "e" in text else text + "."


def shown_positions(size, edge):
    """Returns positions along an axis, with None for those left out."""
    if edge is None or size <= 2 * edge:
        return list(range(size))
    return list(range(edge)) + [None] + list(range(size - edge, size))


def nested_text(shown, words, width):
    def rows(axis, index):
        indent = " " * (axis + 1)
        if axis + 1 < len(shown):
            between = "\n" * (len(shown) - axis - 1) + indent
            return "[" + between.join("..." if i is None else rows(axis + 1, index + (i,)) for i in shown[axis]) + "]"
        text, line = "[", axis + 1
        for at, i in enumerate(shown[axis]):
            word = "..." if i is None else words[index + (i,)].rjust(width)
            if at and line + 1 + len(word) + axis + 1 > LINE_WIDTH:
                text, line = text + "\n" + indent, axis + 1
            elif at:
                text, line = text + " ", line + 1
            text, line = text + word, line + len(word)
        return text + "]"

    return rows(0, ())


# ---- Objects of the program ----


def dim_at(reader, words):
    text = reader.dim_text((words[0], words[1] - (1 << 64) if words[1] >> 63 else words[1]))
    node = words[0]
    if not node:
        return text if text != "?" else "(empty Dim)"
    lengths = reader.member(node, "DimNode.lengths")
    if not lengths or reader.member(node, "DimNode.kind", "<B") != RAGGED:
        return text
    return text + ", lengths " + reader.tensor_text(lengths)


# By the name of a class: the number of 8-byte words that it reads of the object, 0 for its address; and the text.
KINDS = {
    "Tensor": (1, lambda reader, words: reader.tensor_text(words[0])),
    "TensorArray": (1, lambda reader, words: reader.array_text(words[0])),
    "TensorType": (1, lambda reader, words: reader.type_text(words[0]) if words[0] else "(empty TensorType)"),
    "Dim": (2, dim_at),
    "Dims": (0, lambda reader, at: reader.dims_text(reader.dims_at(at))),
    "Graph": (0, lambda reader, at: reader.graph_text(at)),
    "GraphRef": (1, lambda reader, words: reader.graph_text(words[0]) if words[0] else "(no graph)"),
}


def kind_of(name):
    """Returns the key of KINDS for the name of a type, or None."""
    name = (name or "").replace("const ", "").replace(" const", "").strip()
    if name.startswith("std::vector<reel::Dim,") or name == "std::vector<reel::Dim>":
        return "Dims"
    if name.startswith("reel::Ref<reel::Graph"):
        return "GraphRef"
    name = name[6:] if name.startswith("reel::") else ""
    return name if name in KINDS else None


def text_of(kind, read, table_address, address, words=None, max_words=MAX_WORDS):
    """Returns the text of an object, by its address or by its words if it is in registers."""
    count, text = KINDS[kind]
    if not table_address:
        return "(%s: the program has no reel_debugger_offsets: is libreel loaded?)" % kind
    try:
        reader = Reader(read, table_address, max_words)
        if not count:
            return text(reader, address)
        if words is None:
            words = [reader.pointer(address + 8 * i) for i in range(count)]
        return text(reader, words)
    except (Damaged, KeyError, IndexError, struct.error, OverflowError) as error:
        reason = str(error) if isinstance(error, Damaged) else "it does not fit the library"
        return "(damaged %s: %s; not yet initialised, or overwritten)" % (kind, reason)


# ---- gdb ----

try:
    import gdb
except ImportError:
    gdb = None


def gdb_read(address, size):
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except (gdb.MemoryError, gdb.error, OverflowError, ValueError):
        raise Damaged("no memory at 0x%x" % address) from None


def gdb_table():
    try:
        return int(gdb.parse_and_eval("(unsigned long long)&reel_debugger_offsets"))
    except gdb.error:
        return None


def gdb_words(value):
    """Returns the words of an object that is not in memory, such as a returned Tensor: its first leaves."""
    while value.type.strip_typedefs().code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        value = value[value.type.strip_typedefs().fields()[0]]
    return [int(value)]


def gdb_text(kind, value):
    """Returns the text of a value; its first line for an argument of a frame, as in a backtrace."""
    limit = gdb.parameter("print elements") or sys.maxsize
    if value.address is not None:
        text = text_of(kind, gdb_read, gdb_table(), int(value.address), None, limit)
    elif KINDS[kind][0] != 1:
        return "(a %s that is not in memory)" % kind
    else:
        text = text_of(kind, gdb_read, gdb_table(), None, gdb_words(value), limit)
    first, end, _ = text.partition("\n")
    is_argument = getattr(gdb, "print_options", dict)().get("summary")
    return first + " ..." if is_argument and end else text


class GdbPrinter:
    def __init__(self, kind, value):
        self.kind, self.value = kind, value

    def to_string(self):
        return gdb_text(self.kind, self.value)


def gdb_kind(value):
    """Returns the kind, and the value without references."""
    if value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        value = value.referenced_value()
    return kind_of(value.type.strip_typedefs().unqualified().name), value


def reel_printer(value):
    try:
        kind, value = gdb_kind(value)
    except gdb.error:
        return None
    return GdbPrinter(kind, value) if kind else None


def gdb_attach(_=None):
    """Puts the printer in front of those of the first object file: that of Dims stands before std::vector's."""
    objfiles = gdb.objfiles()
    lists = [objfiles[0].pretty_printers] if objfiles else []
    for printers in lists + [gdb.pretty_printers]:
        printers[:] = [p for p in printers if getattr(p, "__name__", "") != "reel_printer"]
        printers.insert(0, reel_printer)


def gdb_command():
    class ReelCommand(gdb.Command):
        """reel EXPRESSION: prints a value of Reel, or a pointer to one.

        Works also if the program has no complete type for it. reel KIND ADDRESS, such as
        `reel Tensor $rdi`, prints the object of a kind at an address."""

        def __init__(self):
            super().__init__("reel", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

        def invoke(self, argument, _):
            kind, _, rest = argument.strip().partition(" ")
            if kind in KINDS and rest:
                print(text_of(kind, gdb_read, gdb_table(), int(gdb.parse_and_eval("(unsigned long long)(%s)" % rest))))
                return
            kind, value = gdb_kind(gdb.parse_and_eval(argument))
            if kind is None and value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR:
                kind, value = gdb_kind(value.dereference())
            if kind is None:
                raise gdb.GdbError("%s is no value of Reel; reel KIND ADDRESS prints one of: %s" %
                                   (argument, ", ".join(sorted(KINDS))))
            print(gdb_text(kind, value))

    ReelCommand()


if gdb is not None:
    gdb_attach()
    gdb.events.new_objfile.connect(gdb_attach)
    gdb_command()


# ---- lldb ----


def lldb_text(value, _):
    """The summary of a value, a reference or a pointer."""
    import lldb

    value = value.GetNonSyntheticValue()
    if value.GetType().IsReferenceType() or value.GetType().IsPointerType():
        value = value.Dereference()
    kind = kind_of(value.GetType().GetCanonicalType().GetUnqualifiedType().GetName())
    target, process = value.GetTarget(), value.GetProcess()
    table = None
    for context in target.FindSymbols("reel_debugger_offsets"):
        table = context.GetSymbol().GetStartAddress().GetLoadAddress(target)

    def read(address, size):
        error = lldb.SBError()
        data = process.ReadMemory(address, size, error) if 0 < address < 1 << 64 else None
        if data is None or len(data) != size or error.Fail():
            raise Damaged("no memory at 0x%x" % address)
        return data

    return text_of(kind, read, table, value.GetLoadAddress()) if kind else ""


class NoChildren:
    """Hides the members of a value whose summary says all."""

    def __init__(self, value, _):
        pass

    def num_children(self):
        return 0

    def has_children(self):
        return False

    def update(self):
        return False


def __lldb_init_module(debugger, _):
    for pattern in ("^reel::(Tensor|TensorArray|TensorType|Dim|Graph)$", "^std::(__1::)?vector<reel::Dim,.*>$",
                    "^reel::Ref<(const )?reel::Graph( const)?>$"):
        debugger.HandleCommand('type summary add -v -w reel -F %s.lldb_text -x "%s"' % (__name__, pattern))
        debugger.HandleCommand('type synthetic add -w reel -l %s.NoChildren -x "%s"' % (__name__, pattern))
    debugger.HandleCommand("type category enable reel")
