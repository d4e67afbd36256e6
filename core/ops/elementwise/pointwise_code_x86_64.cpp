// Each vector of a row runs through the whole chain before the next one; the last elements of a row
// are a masked vector.
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <mutex>

#define XBYAK_NO_OP_NAMES  // and, or, xor are words of C++
#include <xbyak/xbyak.h>

#include "reel/core/ops/elementwise/chain_registers.h"
#include "reel/core/ops/elementwise/pointwise_code.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"

namespace reel {
namespace {

using Xbyak::Opmask;
using Xbyak::Reg64;
using Xbyak::Zmm;

/// Comparisons of VCMPPS, without signals. Source: Intel's manual, volume 2, table 3-1.
enum Comparison : std::uint8_t {
  kUnordered = 0x03,
  kLess = 0x11,
  kNotLessOrEqual = 0x16,
  kGreater = 0x1e
};

class Generator : public PointwiseCode, private Xbyak::CodeGenerator {
 public:
  explicit Generator(const Chain& chain)
      // Memory is never writable and executable at once, which some systems forbid.
      : CodeGenerator(kBytes + kBytesOfAPlace * (chain.steps.size() + chain.places()),
                      Xbyak::DontSetProtectRWE),
        chain_(chain) {
    write();
    setProtectModeRE();
    entry_ = getCode<void (*)(ChainRun*)>();
  }

 private:
  static constexpr std::size_t kBytes = 512, kBytesOfAPlace = 128;
  /// Distance of prefetches, in bytes: a gradient's operands of millions of elements are in no
  /// cache, and the processor's own prefetching restarts with every page.
  static constexpr int kAhead = 2048;

  bool is_f32() const { return chain_.item == 4; }
  // rdi points to the run.
  Xbyak::Address at_of(std::size_t place) {
    return ptr[rdi + static_cast<int>(offsetof(ChainRun, at) + place * sizeof(char*))];
  }
  Xbyak::Address step_of(std::size_t place) {
    return ptr[rdi + static_cast<int>(offsetof(ChainRun, step) + place * sizeof(std::int64_t))];
  }

  void write() {
    // Saves the callee-saved registers in use.
    const std::size_t held = std::min(chain_.places(), pointers_.size());
    std::vector<Reg64> saved(pointers_.begin() + std::min(kFree, held), pointers_.begin() + held);
    saved.push_back(scratch_);
    for (const Reg64& r : saved) push(r);
    write_constants();
    // rdx: bytes of a row's whole vectors. k1: mask of the elements after them; k4: the other
    // lanes. rsi: remaining rows.
    const int lanes = static_cast<int>(64 / chain_.item);
    mov(rcx, ptr[rdi + static_cast<int>(offsetof(ChainRun, columns))]);
    mov(rdx, rcx);
    and_(rdx, -lanes);
    shl(rdx, is_f32() ? 2 : 3);
    and_(ecx, lanes - 1);
    mov(eax, 1);
    shl(eax, cl);
    dec(eax);
    kmovw(k1, eax);
    knotw(k4, k1);
    mov(rsi, ptr[rdi + static_cast<int>(offsetof(ChainRun, rows))]);

    Xbyak::Label row, vector, part, next, end;
    L(row);
    for (std::size_t place = 0; place < held; ++place) mov(pointers_[place], at_of(place));
    xor_(eax, eax);
    test(rdx, rdx);
    jz(part, T_NEAR);
    align(32);
    L(vector);
    write_vector(false);
    add(rax, 64);
    cmp(rax, rdx);
    jl(vector, T_NEAR);
    L(part);
    kortestw(k1, k1);
    jz(next, T_NEAR);
    write_vector(true);
    L(next);
    dec(rsi);
    jz(end, T_NEAR);
    for (std::size_t place = 0; place < chain_.places(); ++place) {
      mov(scratch_, step_of(place));
      add(at_of(place), scratch_);
    }
    jmp(row, T_NEAR);
    L(end);
    vzeroupper();
    for (std::size_t i = saved.size(); i-- > 0;) pop(saved[i]);
    ret();
  }

  void write_constants() {
    const auto broadcast = [&](const Zmm& to, std::uint64_t bits) {
      mov(rax, bits);
      if (is_f32())
        vpbroadcastd(to, eax);
      else
        vpbroadcastq(to, rax);
    };
    if (needs_one()) broadcast(one_, is_f32() ? 0x3f800000 : 0x3ff0000000000000);
    if (needs_minus_zero()) broadcast(minus_zero_, is_f32() ? 0x80000000 : 0x8000000000000000);
  }
  template <class Op>
  bool has_op(std::initializer_list<Op> ops) const {
    return std::any_of(chain_.steps.begin(), chain_.steps.end(), [&](const Chain::Step& step) {
      const Op* op = step.op ? std::get_if<Op>(&*step.op) : nullptr;
      return op && std::find(ops.begin(), ops.end(), *op) != ops.end();
    });
  }
  bool needs_one() const { return has_op({Binary::tanh_grad, Binary::sigmoid_grad}); }
  bool needs_minus_zero() const { return has_op({Unary::neg, Unary::abs, Unary::relu}); }

  // ---- One vector -------------------------------------------------------------------------------

  void write_vector(bool is_part) {
    Registers registers(chain_);
    const auto zmm = [&](int v) { return Zmm(registers.of(v)); };
    go_through(
        chain_, registers, [&](int v) { load(zmm(v), static_cast<std::size_t>(v), is_part); },
        [&](const Chain::Step& step, int made) {
          if (!step.op)
            vmovaps(zmm(made), zmm(step.in[0]));
          else if (const Unary* op = std::get_if<Unary>(&*step.op))
            write_unary(*op, zmm(made), zmm(step.in[0]));
          else
            write_binary(std::get<Binary>(*step.op), zmm(made), zmm(step.in[0]), zmm(step.in[1]));
        });
    for (std::size_t k = 0; k < chain_.results.size(); ++k)
      store(zmm(chain_.results[k]), chain_.repeats.size() + k, is_part);
  }

  Reg64 pointer(std::size_t place) {
    if (place < pointers_.size()) return pointers_[place];
    mov(scratch_, at_of(place));
    return scratch_;
  }
  void load(const Zmm& to, std::size_t place, bool is_part) {
    const Reg64 from = pointer(place);
    if (chain_.repeats[place])
      is_f32() ? vbroadcastss(to, ptr[from]) : vbroadcastsd(to, ptr[from]);
    else if (is_part)
      load_repeated(to, from);
    else
      vmovups(to, ptr[from + rax]);
    if (!chain_.repeats[place] && !is_part) prefetcht0(ptr[from + rax + kAhead]);
  }
  /// As load_repeated of pointwise_isa.cpp: lanes beyond the row's end are copies of the first of
  /// these elements, and raise no floating-point exception of their own.
  void load_repeated(const Zmm& to, const Reg64& from) {
    const Xbyak::Xmm first(to.getIdx());
    if (is_f32()) {
      vmovups(to | k1 | T_z, ptr[from + rax]);
      vbroadcastss(to | k4, first);
    } else {
      vmovupd(to | k1 | T_z, ptr[from + rax]);
      vbroadcastsd(to | k4, first);
    }
  }
  void store(const Zmm& from, std::size_t place, bool is_part) {
    const Reg64 to = pointer(place);
    if (is_part)
      is_f32() ? vmovups(ptr[to + rax] | k1, from) : vmovupd(ptr[to + rax] | k1, from);
    else
      vmovups(ptr[to + rax], from);
  }

  // ---- Ops: as in pointwise_functors.h ----------------------------------------------------------

  using Three = void (CodeGenerator::*)(const Xbyak::Xmm&, const Xbyak::Operand&,
                                        const Xbyak::Operand&);
  void three(Three f32, Three f64, const Zmm& to, const Zmm& a, const Zmm& b) {
    (this->*(is_f32() ? f32 : f64))(to, a, b);
  }
  void subtract_to(const Zmm& to, const Zmm& a, const Zmm& b) {
    three(&CodeGenerator::vsubps, &CodeGenerator::vsubpd, to, a, b);
  }
  void multiply_to(const Zmm& to, const Zmm& a, const Zmm& b) {
    three(&CodeGenerator::vmulps, &CodeGenerator::vmulpd, to, a, b);
  }
  void compare(const Opmask& to, const Zmm& a, const Zmm& b, Comparison how) {
    is_f32() ? vcmpps(to, a, b, how) : vcmppd(to, a, b, how);
  }
  /// Selects a if the comparison is true or a is NaN, else b.
  void select(const Zmm& to, const Zmm& a, const Zmm& b, Comparison how) {
    compare(k2, a, b, how);
    compare(k3, a, a, kUnordered);
    korw(k2, k2, k3);
    is_f32() ? vblendmps(to | k2, b, a) : vblendmpd(to | k2, b, a);
  }

  void write_unary(Unary op, const Zmm& to, const Zmm& x) {
    switch (op) {
      case Unary::neg:
        return subtract_to(to, minus_zero_, x);
      case Unary::abs:
        return three(&CodeGenerator::vandnps, &CodeGenerator::vandnpd, to, minus_zero_, x);
      case Unary::square:
        return multiply_to(to, x, x);
      case Unary::sqrt:
        return is_f32() ? vsqrtps(to, x) : vsqrtpd(to, x);
      case Unary::relu:
        compare(k2, x, minus_zero_, kNotLessOrEqual);
        return is_f32() ? vmovaps(to | k2 | T_z, x) : vmovapd(to | k2 | T_z, x);
      default:
        throw InternalError("an op of a chain has no code");
    }
  }
  void write_binary(Binary op, const Zmm& to, const Zmm& a, const Zmm& b) {
    switch (op) {
      case Binary::add:
        return three(&CodeGenerator::vaddps, &CodeGenerator::vaddpd, to, a, b);
      case Binary::sub:
        return subtract_to(to, a, b);
      case Binary::mul:
        return multiply_to(to, a, b);
      case Binary::div:
        return three(&CodeGenerator::vdivps, &CodeGenerator::vdivpd, to, a, b);
      case Binary::maximum:
        return select(to, a, b, kGreater);
      case Binary::minimum:
        return select(to, a, b, kLess);
      case Binary::tanh_grad:
        vmovaps(to, one_);
        if (is_f32())
          vfnmadd231ps(to, a, a);
        else
          vfnmadd231pd(to, a, a);
        return multiply_to(to, to, b);
      case Binary::sigmoid_grad:
        subtract_to(to, one_, a);
        multiply_to(to, a, to);
        return multiply_to(to, to, b);
      default:
        throw InternalError("an op of a chain has no code");
    }
  }

  const Chain chain_;
  // The first kFree need not be preserved.
  static constexpr std::size_t kFree = 5;
  const std::array<Reg64, 10> pointers_ = {rcx, r8, r9, r10, r11, rbx, rbp, r12, r13, r14};
  const Reg64 scratch_ = r15;
  const Zmm one_ = zmm30, minus_zero_ = zmm31;
};
static_assert(kChainRegisters <= 30, "two hold constants");

}  // namespace

std::shared_ptr<const PointwiseCode> code_of(const Chain& chain) {
  if (&pointwise_table() != &avx512::table) return nullptr;
  static std::mutex mutex;
  using Made = std::map<std::string, std::weak_ptr<const PointwiseCode>>;
  static Made& made = *new Made;  // destructors of global objects may still run plans
  const std::string key = chain.key();
  const std::lock_guard lock(mutex);
  if (const auto found = made.find(key); found != made.end())
    if (auto code = found->second.lock()) return code;
  try {
    auto code = std::make_shared<const Generator>(chain);
    std::erase_if(made, [](const auto& entry) { return entry.second.expired(); });
    made[key] = code;
    return code;
  } catch (const Xbyak::Error&) {
    return nullptr;  // the system allows no generated code
  }
}

}  // namespace reel
