#include "reel/core/debugger/offsets.h"

#include <cstddef>

#include "reel/core/graph/graph.h"
#include "reel/core/op/op.h"
#include "reel/core/ops/list/list_data.h"
#include "reel/core/types/block.h"
#include "reel/core/types/dim_expression.h"
#include "reel/core/types/tensor.h"

// Some of the classes have bases or private members. Compilers define offsetof for them too.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace reel {

// The handles are single pointers: a debugger reads them at the address of the object.
static_assert(sizeof(Tensor) == sizeof(void*) && sizeof(TensorType) == sizeof(void*));
static_assert(sizeof(Ref<TensorBlock>) == sizeof(void*) && sizeof(Dim) == 2 * sizeof(void*));

#define REEL_OFFSET(type, member) \
  { #type "." #member, std::int32_t(offsetof(type, member)) }
#define REEL_SIZE(type) \
  { #type, std::int32_t(sizeof(type)) }

/// The private members of PersistentList.
struct PersistentListOffsets {
  using Node = PersistentList::Node;
  static constexpr std::int32_t root = offsetof(PersistentList, root_),
                                height = offsetof(PersistentList, height_),
                                size = offsetof(PersistentList, size_),
                                children = offsetof(Node, children),
                                elements = offsetof(Node, elements);
};

extern "C" const DebuggerOffset reel_debugger_offsets[] = {
    REEL_OFFSET(TensorBlock, refs),
    REEL_OFFSET(TensorBlock, kind),
    REEL_OFFSET(TensorBlock, type),
    REEL_OFFSET(TensorBlock, data),
    REEL_OFFSET(TensorBlock, attachment),
    REEL_OFFSET(Recording, place),
    REEL_OFFSET(TypeNode, dtype),
    REEL_OFFSET(TypeNode, is_list),
    REEL_OFFSET(TypeNode, is_unranked),
    REEL_OFFSET(TypeNode, dims),
    REEL_OFFSET(TypeNode, sizes),
    REEL_OFFSET(TypeNode, numel),
    REEL_SIZE(Dim),
    REEL_OFFSET(DimNode, name),
    REEL_OFFSET(DimNode, kind),
    REEL_OFFSET(DimNode, lengths),
    REEL_OFFSET(DimNode, length_dims),
    REEL_OFFSET(DimNode, is_full),
    REEL_OFFSET(DimNode, expression),
    REEL_OFFSET(DimExpression, operation),
    REEL_OFFSET(DimExpression, operands),
    REEL_OFFSET(DimExpression, number),
    REEL_OFFSET(ListData, items),
    {"PersistentList.root", PersistentListOffsets::root},
    {"PersistentList.height", PersistentListOffsets::height},
    {"PersistentList.size", PersistentListOffsets::size},
    {"PersistentList.children", PersistentListOffsets::children},
    {"PersistentList.elements", PersistentListOffsets::elements},
    REEL_OFFSET(Op, name),
    REEL_SIZE(OpRecord),
    REEL_OFFSET(OpRecord, op),
    REEL_OFFSET(OpRecord, first),
    REEL_OFFSET(OpRecord, input_count),
    REEL_OFFSET(OpRecord, output_count),
    REEL_OFFSET(Graph, records),
    REEL_OFFSET(Graph, operands),
    REEL_OFFSET(Graph, name),
    REEL_OFFSET(Graph, types),
    REEL_OFFSET(Graph, inputs),
    REEL_OFFSET(Graph, formal_count),
    REEL_OFFSET(Graph, outputs),
    {"", 0},
};

}  // namespace reel
