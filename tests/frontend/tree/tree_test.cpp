// Trees: the types that can be leaves, paths by field names, and putting leaves back.
#include <gtest/gtest.h>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

struct Inner {
  Tensor recurrent_weight, bias;
};
struct Empty {};
struct Outer {
  Inner encoder;
  std::vector<Tensor> layers;
  std::optional<Tensor> maybe;
  std::map<std::string, Tensor> named;
  std::pair<Tensor, int> both;
  std::array<Tensor, 2> two;
  Empty nothing;
  None none;
};
class WithMembers {
 public:
  explicit WithMembers(Tensor x) : x_(std::move(x)) {}
  auto members() { return std::tie(x_); }
  const Tensor& x() const { return x_; }

 private:
  Tensor x_;
};

Outer make() {
  const auto t = [](int i) { return scalar(i); };
  return {{t(0), t(1)}, {t(2), t(3)}, t(4), {{"b", t(6)}, {"a", t(5)}},
          {t(7), 42},   {t(8), t(9)}, {},   {}};
}

TEST(TreeTest, PathsAreTheNamesOfFields) {
  EXPECT_EQ(
      tree_paths(make()),
      (std::vector<std::string>{"encoder.recurrent_weight", "encoder.bias", "layers.0", "layers.1",
                                "maybe", "named.a", "named.b", "both.0", "two.0", "two.1"}));
}

TEST(TreeTest, StructsInsideFunctionsHaveNamesToo) {
  struct Local {
    Tensor hidden_state;
  };
  EXPECT_EQ(tree_paths(Local{scalar(1)}), std::vector<std::string>{"hidden_state"});
}

TEST(TreeTest, FieldsMayHaveDefaultsOrNone) {
  struct Layers {
    std::array<Inner, 2> cells;  // an array as first member
    Inner out = {scalar(4), scalar(5)};
    std::vector<Tensor> more = {scalar(6)};
    int steps = 3;
    TensorType type;  // has no default constructor
    std::array<std::array<Tensor, 1>, 1> inside = {};
  };
  static_assert(detail::kFieldCount<Layers> == 6);
  static_assert(detail::field_name<Layers, 5>() == "inside");
  const Inner cell{scalar(0), scalar(1)};
  struct Cells {
    std::array<Inner, 2> cells;
    Inner out = {scalar(4), scalar(5)};
    int steps = 3;
  };
  EXPECT_EQ(tree_paths(Cells{{cell, cell}}),
            (std::vector<std::string>{"cells.0.recurrent_weight", "cells.0.bias",
                                      "cells.1.recurrent_weight", "cells.1.bias",
                                      "out.recurrent_weight", "out.bias"}));
}

// A struct with a C array is refused at compile time, with a repair.
struct WithCArray {
  Tensor a;
  Tensor w[2];
  int n;
};
struct ArrayLast {
  int sizes[3];
};
static_assert(detail::kHasCArray<WithCArray> && detail::kHasCArray<ArrayLast>);
static_assert(!detail::kHasCArray<Inner> && !detail::kHasCArray<Outer> &&
              !detail::kHasCArray<Empty>);

TEST(TreeTest, LeavesComeInFieldOrderAndGoBack) {
  const Outer tree = make();
  const Tensors tensors = tensors_of(flatten(tree));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    EXPECT_EQ(tensors[i].item<int>(), static_cast<int>(i));
  const Outer back = tree_map([](const Tensor& t) { return t * 2; }, tree);
  EXPECT_EQ(back.named.at("a").item<int>(), 10);
  EXPECT_EQ(back.both.second, 42);
  EXPECT_EQ(back.two[1].item<int>(), 18);
}

TEST(TreeTest, ClassesJoinByTheirMembers) {
  const WithMembers object(scalar(3));
  const WithMembers doubled = tree_map([](const Tensor& t) { return t * 2; }, object);
  EXPECT_EQ(doubled.x().item<int>(), 6);
  EXPECT_EQ(object.x().item<int>(), 3);
}

class WithMemberNames {
 public:
  WithMemberNames(Tensor step, Inner moment) : step_(std::move(step)), moment_(std::move(moment)) {}
  auto members() { return std::tie(step_, moment_, decay_); }
  static constexpr std::array<std::string_view, 3> member_names() {
    return {"step", "first_moment", "decay"};
  }

 private:
  Tensor step_;
  Inner moment_;
  double decay_ = 0.9;
};

TEST(TreeTest, MembersMayHaveNames) {
  const std::pair<WithMembers, WithMemberNames> tree{
      scalar(1), WithMemberNames(scalar(2), {scalar(3), scalar(4)})};
  EXPECT_EQ(tree_paths(tree),
            (std::vector<std::string>{"0.0", "1.step", "1.first_moment.recurrent_weight",
                                      "1.first_moment.bias"}));
  EXPECT_EQ(leaf_paths(tree.second, "optimiser").back(), "optimiser.decay");
  EXPECT_EQ(tensors_of(flatten(tree))[3].item<int>(), 4);
}

TEST(TreeTest, PathsMayHaveARoot) {
  EXPECT_EQ(tree_paths(Inner{scalar(1), scalar(2)}, "model.cell"),
            (std::vector<std::string>{"model.cell.recurrent_weight", "model.cell.bias"}));
  EXPECT_EQ(tree_paths(scalar(1), "step"), std::vector<std::string>{"step"});
}

TEST(TreeTest, SizesOfContainersArePartOfTheStructure) {
  const std::vector<Tensor> one{scalar(1)}, two{scalar(1), scalar(2)};
  EXPECT_EQ(flatten(one)[0].fixed, "of size 1");
  EXPECT_EQ(flatten(two)[0].fixed, "of size 2");
}

TEST(TreeTest, LeavesOfAnotherStructureAreRefused) {
  using List = std::vector<Tensor>;
  const List two{scalar(1), scalar(2)};
  const auto refuses = [](const auto& like, const TreeLeaves& leaves) {
    EXPECT_THROW(unflatten(like, leaves), StructureError);
  };
  refuses(two, flatten(List{scalar(1)}));
  refuses(two, flatten(List{scalar(1), scalar(2), scalar(3)}));
  refuses(scalar(1), flatten(None{}));
  refuses(Dim("a", 1), flatten(scalar(1)));
  refuses(std::pair{two, List{}}, flatten(std::pair{List{}, two}));
  refuses(std::map<std::string, Tensor>{{"a", scalar(1)}},
          flatten(std::map<std::string, Tensor>{{"b", scalar(1)}}));
  refuses(std::optional<Tensor>(), flatten(std::optional(scalar(1))));
  EXPECT_EQ(unflatten(two, flatten(two)).size(), 2U);
  EXPECT_EQ(message_of<StructureError>([&] { with_tensors(flatten(two), {scalar(1)}); }),
            "a tree of 2 tensors was given 1; give one for each");
}

TEST(TreeTest, MappedTreesHaveOneStructure) {
  using List = std::vector<Tensor>;
  const List two{scalar(1), scalar(2)};
  const auto add = [](const Tensor& a, const Tensor& b) { return a + b; };
  expect_values(tree_map(add, two, two)[1], {4});
  EXPECT_EQ(message_of<StructureError>([&] { tree_map(add, two, List{scalar(1)}); }),
            "tree_map: the trees do not have the same structure, 3 leaves and 2\n"
            "  the tree: of size 2, in a further tree of size 1");
  EXPECT_THROW(tree_map(add, two, std::pair{scalar(1), scalar(2)}), StructureError);
}

TEST(TreeTest, TextsAreNoContainers) {
  const std::string text = "of size 2";
  EXPECT_FALSE(flatten(text)[0].fixed.is_of_container());
  EXPECT_NE(flatten(text)[0].fixed, flatten(std::vector<std::string>(2))[0].fixed);
}

}  // namespace
}  // namespace reel
