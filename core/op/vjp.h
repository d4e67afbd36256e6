// core/op/vjp.h — Vjp, the arguments of an op's vjp.
#pragma once

#include "reel/core/op/op.h"

namespace reel {

/// One application of an op in the reverse pass: cotangents of its outputs are given, cotangents of
/// its inputs are wanted.
///
/// A vjp calls add(i, x̄) for the inputs with needs(i). It must read only the inputs and outputs
/// that its op's `reads` names.
class Vjp {
 public:
  virtual ~Vjp() = default;

  const Op& op() const { return *op_; }
  const AttrsRef& attrs() const { return *attrs_; }
  template <class T>
  const T& attr() const {
    return get<T>(attrs_->get());
  }

  virtual std::size_t input_count() const = 0;
  virtual std::size_t output_count() const = 0;
  virtual const Tensor& input(std::size_t i) const = 0;
  virtual const Tensor& output(std::size_t i = 0) const = 0;
  virtual const TensorType& input_type(std::size_t i) const = 0;
  virtual const TensorType& output_type(std::size_t i = 0) const = 0;
  virtual bool has_cotangent(std::size_t i) const = 0;
  /// Returns the cotangent of an output; zeros if it has none.
  virtual Tensor cotangent(std::size_t i = 0) = 0;
  /// Returns the cotangent for the last time: the next op may overwrite its buffer.
  virtual Tensor last_cotangent(std::size_t i = 0) = 0;
  /// Returns true if the cotangent of this input is wanted.
  virtual bool needs(std::size_t i) const = 0;
  /// Adds to the cotangent of input i.
  virtual void add(std::size_t i, Tensor cotangent) = 0;
  /// Adds to the cotangent of input i if it is decided at run time whether a path leads to the
  /// input. present: a boolean scalar. If it is false, the cotangent must be zeros and counts as
  /// none.
  virtual void add(std::size_t i, Tensor cotangent, const Tensor& present) = 0;
  /// Returns true if the cotangent of this input, a table, may be given as table rows by
  /// add_rows().
  virtual bool takes_rows(std::size_t) const { return false; }
  /// Adds a cotangent by its table rows that are not zero (core/ops/indexing/rows.h). Requires
  /// takes_rows(i). A number may occur several times.
  virtual void add_rows(std::size_t i, Tensor values, Tensor numbers) = 0;

 protected:
  const Op* op_ = nullptr;
  const AttrsRef* attrs_ = nullptr;
};

}  // namespace reel
