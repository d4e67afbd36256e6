// core/vjp.h — Vjp, what an op's vjp sees.
#pragma once

#include "reel/core/op.h"

namespace reel {

/// One application of an op, seen from behind: cotangents of its outputs are known, those of its
/// inputs wanted.
///
/// A vjp calls add(i, x̄) for inputs that need it. It may read only the inputs and outputs that its
/// op's `reads` names.
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
  /// The cotangent of an output; zeros where none arrived.
  virtual Tensor cotangent(std::size_t i = 0) = 0;
  /// The same, asked for the last time: the next op may use its buffer.
  virtual Tensor last_cotangent(std::size_t i = 0) = 0;
  /// Somebody wants the cotangent of this input.
  virtual bool needs(std::size_t i) const = 0;
  virtual void add(std::size_t i, Tensor cotangent) = 0;
  /// The same where only a run tells whether there is a path to the input. present: a boolean
  /// scalar; where it is false, the cotangent is zeros and counts as none.
  virtual void add(std::size_t i, Tensor cotangent, const Tensor& present) = 0;
  /// Who wants the cotangent of this input, a table, takes it as rows: it need not be made whole.
  virtual bool takes_rows(std::size_t) const { return false; }
  /// The rows of it that are not zero (core/ops/rows.h), where takes_rows says so. One number may
  /// come several times.
  virtual void add_rows(std::size_t i, Tensor values, Tensor numbers) = 0;

 protected:
  const Op* op_ = nullptr;
  const AttrsRef* attrs_ = nullptr;
};

}  // namespace reel
