// Code of chains for AVX-512 and AVX2. Each vector of a row runs through the whole chain before the
// next one; the last elements of a row are a masked vector.
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <type_traits>

#define XBYAK_NO_OP_NAMES  // and, or, xor are words of C++
#include <xbyak/xbyak.h>

#include "reel/core/ops/elementwise/chain_functions_x86_64.h"
#include "reel/core/ops/elementwise/chain_registers.h"
#include "reel/core/ops/elementwise/pointwise_code.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"

namespace reel {
namespace {

using Xbyak::Reg64;
using Xbyak::Ymm;
using Xbyak::Zmm;

/// Comparisons of VCMPPS, without signals. Source: Intel's manual, volume 2, table 3-1.
enum Comparison : std::uint8_t {
  kUnordered = 0x03,
  kLess = 0x11,
  kNotLessOrEqual = 0x16,
  kGreater = 0x1e
};

/// Masks of a row's last vector for AVX2, which has no registers of masks. The mask of the first n
/// elements begins n elements before the middle of the array.
constexpr std::int32_t kPartMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
constexpr std::int64_t kWidePartMasks[8] = {-1, -1, -1, -1};

/// Vector: Zmm for AVX-512, Ymm for AVX2.
template <class Vector>
class Generator : public PointwiseCode, private Xbyak::CodeGenerator {
 public:
  static constexpr bool kHasMasks = std::is_same_v<Vector, Zmm>;  ///< AVX-512
  /// Registers of values. The others hold constants, and for AVX2 a mask and a comparison's result.
  static constexpr int kRegisters = kHasMasks ? 29 : 12;

  explicit Generator(const Chain& chain)
      // Memory is never writable and executable at once, which some systems forbid.
      : CodeGenerator(bytes_for(chain), Xbyak::DontSetProtectRWE), chain_(chain) {
    write();
    setProtectModeRE();
    entry_ = getCode<void (*)(ChainRun*)>();
    bytes_ = (bytes_for(chain) + kPage - 1) / kPage * kPage;
  }

 private:
  static std::size_t bytes_for(const Chain& chain) {
    constexpr std::size_t kBytes = 512, kBytesOfAPlace = 128;
    const auto functions = static_cast<std::size_t>(
        std::count_if(chain.steps.begin(), chain.steps.end(), is_function));
    // A function is written twice: for whole vectors and for the last elements of a row.
    return kBytes + kBytesOfAPlace * (chain.steps.size() + chain.places()) +
           2 * ChainFunctions<Vector>::kBytes * functions;
  }
  /// A page has the code of one chain only.
  static constexpr std::size_t kPage = Xbyak::inner::ALIGN_PAGE_SIZE;
  static constexpr int kVectorBytes = kHasMasks ? 64 : 32;
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
    // rdx: bytes of a row's whole vectors. rsi: remaining rows.
    const int lanes = kVectorBytes / static_cast<int>(chain_.item);
    mov(rcx, ptr[rdi + static_cast<int>(offsetof(ChainRun, columns))]);
    mov(rdx, rcx);
    and_(rdx, -lanes);
    shl(rdx, is_f32() ? 2 : 3);
    and_(ecx, lanes - 1);
    write_mask(lanes);
    mov(rsi, ptr[rdi + static_cast<int>(offsetof(ChainRun, rows))]);

    for (std::size_t place = 0; place < held; ++place) mov(pointers_[place], at_of(place));
    Xbyak::Label row, vector, part, next, end;
    L(row);
    xor_(eax, eax);
    test(rdx, rdx);
    jz(part, T_NEAR);
    align(32);
    L(vector);
    write_vector(false);
    add(rax, kVectorBytes);
    cmp(rax, rdx);
    jl(vector, T_NEAR);
    L(part);
    if constexpr (kHasMasks)
      kortestw(k1, k1);
    else
      vptest(mask_, mask_);
    jz(next, T_NEAR);
    write_vector(true);
    L(next);
    dec(rsi);
    jz(end, T_NEAR);
    for (std::size_t place = 0; place < held; ++place) add(pointers_[place], step_of(place));
    for (std::size_t place = held; place < chain_.places(); ++place) {
      mov(scratch_, step_of(place));
      add(at_of(place), scratch_);
    }
    jmp(row, T_NEAR);
    L(end);
    vzeroupper();
    for (std::size_t i = saved.size(); i-- > 0;) pop(saved[i]);
    ret();
  }

  /// Makes the mask of the ecx elements behind the whole vectors. For AVX-512, k1 is that mask, and
  /// k4 has the other lanes.
  void write_mask(int lanes) {
    if constexpr (kHasMasks) {
      mov(eax, 1);
      shl(eax, cl);
      dec(eax);
      kmovw(k1, eax);
      knotw(k4, k1);
    } else {
      mov(rax, is_f32() ? reinterpret_cast<std::uintptr_t>(kPartMasks + lanes)
                        : reinterpret_cast<std::uintptr_t>(kWidePartMasks + lanes));
      neg(rcx);
      vmovdqu(mask_, is_f32() ? ptr[rax + rcx * 4] : ptr[rax + rcx * 8]);
    }
  }

  void write_constants() {
    const auto broadcast = [&](const Vector& to, std::uint64_t bits) {
      const Xbyak::Xmm low(to.getIdx() % 16);
      mov(rax, bits);
      if constexpr (kHasMasks)
        is_f32() ? vpbroadcastd(to, eax) : vpbroadcastq(to, rax);
      else if (is_f32())
        vmovd(low, eax), vpbroadcastd(to, low);
      else
        vmovq(low, rax), vpbroadcastq(to, low);
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
  bool needs_minus_zero() const {
    return has_op({Unary::neg, Unary::abs, Unary::relu, Unary::tanh, Unary::sigmoid});
  }

  // ---- One vector -------------------------------------------------------------------------------

  void write_vector(bool is_part) {
    Registers registers(chain_);
    const auto in_register = [&](int v) { return Vector(registers.of(v)); };
    go_through(
        chain_, registers,
        [&](int v) { load(in_register(v), static_cast<std::size_t>(v), is_part); },
        [&](const Chain::Step& step, int made, const std::array<int, 2>& spare) {
          if (!step.op)
            vmovaps(in_register(made), in_register(step.in[0]));
          else if (is_function(step))
            write_function(std::get<Unary>(*step.op), in_register(made), in_register(step.in[0]),
                           {Vector(spare[0]), Vector(spare[1]), scratch_vector()});
          else if (const Unary* op = std::get_if<Unary>(&*step.op))
            write_unary(*op, in_register(made), in_register(step.in[0]));
          else
            write_binary(std::get<Binary>(*step.op), in_register(made), in_register(step.in[0]),
                         in_register(step.in[1]));
        });
    for (std::size_t k = 0; k < chain_.results.size(); ++k)
      store(in_register(chain_.results[k]), chain_.repeats.size() + k, is_part);
  }

  Reg64 pointer(std::size_t place) {
    if (place < pointers_.size()) return pointers_[place];
    mov(scratch_, at_of(place));
    return scratch_;
  }
  void load(const Vector& to, std::size_t place, bool is_part) {
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
  void load_repeated(const Vector& to, const Reg64& from) {
    const Xbyak::Xmm first(to.getIdx());
    if constexpr (!kHasMasks) {
      if (is_f32()) {
        vmaskmovps(to, mask_, ptr[from + rax]);
        vbroadcastss(scratch_vector_, first);
        vblendvps(to, scratch_vector_, to, mask_);
      } else {
        vmaskmovpd(to, mask_, ptr[from + rax]);
        vbroadcastsd(scratch_vector_, first);
        vblendvpd(to, scratch_vector_, to, mask_);
      }
    } else if (is_f32()) {
      vmovups(to | k1 | T_z, ptr[from + rax]);
      vbroadcastss(to | k4, first);
    } else {
      vmovupd(to | k1 | T_z, ptr[from + rax]);
      vbroadcastsd(to | k4, first);
    }
  }
  void store(const Vector& from, std::size_t place, bool is_part) {
    const Reg64 to = pointer(place);
    if (!is_part)
      vmovups(ptr[to + rax], from);
    else if constexpr (!kHasMasks)
      is_f32() ? vmaskmovps(ptr[to + rax], mask_, from) : vmaskmovpd(ptr[to + rax], mask_, from);
    else
      is_f32() ? vmovups(ptr[to + rax] | k1, from) : vmovupd(ptr[to + rax] | k1, from);
  }

  // ---- Ops: as in pointwise_functors.h ----------------------------------------------------------

  using Three = void (CodeGenerator::*)(const Xbyak::Xmm&, const Xbyak::Operand&,
                                        const Xbyak::Operand&);
  void three(Three f32, Three f64, const Vector& to, const Vector& a, const Vector& b) {
    (this->*(is_f32() ? f32 : f64))(to, a, b);
  }
  void subtract_to(const Vector& to, const Vector& a, const Vector& b) {
    three(&CodeGenerator::vsubps, &CodeGenerator::vsubpd, to, a, b);
  }
  void multiply_to(const Vector& to, const Vector& a, const Vector& b) {
    three(&CodeGenerator::vmulps, &CodeGenerator::vmulpd, to, a, b);
  }
  /// to: a register of masks, or for AVX2 a vector. A result's register holds no operand.
  template <class To>
  void compare(const To& to, const Vector& a, const Vector& b, Comparison how) {
    is_f32() ? vcmpps(to, a, b, how) : vcmppd(to, a, b, how);
  }
  /// Selects a if the comparison is true or a is NaN, else b.
  void select(const Vector& to, const Vector& a, const Vector& b, Comparison how) {
    if constexpr (kHasMasks) {
      compare(k2, a, b, how);
      compare(k3, a, a, kUnordered);
      korw(k2, k2, k3);
      is_f32() ? vblendmps(to | k2, b, a) : vblendmpd(to | k2, b, a);
    } else {
      compare(to, a, b, how);
      compare(scratch_vector_, a, a, kUnordered);
      vorps(to, to, scratch_vector_);
      is_f32() ? vblendvps(to, b, a, to) : vblendvpd(to, b, a, to);
    }
  }
  void positive_part(const Vector& to, const Vector& x) {
    if constexpr (kHasMasks) {
      compare(k2, x, minus_zero_, kNotLessOrEqual);
      is_f32() ? vmovaps(to | k2 | T_z, x) : vmovapd(to | k2 | T_z, x);
    } else {
      compare(to, x, minus_zero_, kNotLessOrEqual);
      vandps(to, to, x);
    }
  }

  void write_unary(Unary op, const Vector& to, const Vector& x) {
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
        return positive_part(to, x);
      default:
        throw InternalError("an op of a chain has no code");
    }
  }
  void write_function(Unary op, const Vector& to, const Vector& x,
                      const typename ChainFunctions<Vector>::Registers& with) {
    ChainFunctions<Vector> functions(*this, scratch_, minus_zero_, with);
    if (op == Unary::exp)
      functions.exp(to, x);
    else if (op == Unary::tanh)
      functions.tanh(to, x);
    else
      functions.sigmoid(to, x);
  }
  void write_binary(Binary op, const Vector& to, const Vector& a, const Vector& b) {
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
  const Vector one_{kRegisters}, minus_zero_{kRegisters + 1};
  const Ymm mask_ = ymm14, scratch_vector_ = ymm15;  ///< AVX2
  Vector scratch_vector() const { return Vector(kHasMasks ? 31 : 15); }
};

bool has_avx512() { return &pointwise_table() == &avx512::table; }

std::shared_ptr<const PointwiseCode> generated(const Chain& chain) {
  if (has_avx512()) return std::make_shared<const Generator<Zmm>>(chain);
  return std::make_shared<const Generator<Ymm>>(chain);
}

}  // namespace

int chain_registers() {
  return has_avx512() ? Generator<Zmm>::kRegisters : Generator<Ymm>::kRegisters;
}

std::shared_ptr<const PointwiseCode> code_of(const Chain& chain) {
  if (!has_avx512() && &pointwise_table() != &avx2::table) return nullptr;
  static std::mutex mutex;
  using Made = std::map<std::string, std::weak_ptr<const PointwiseCode>>;
  static Made& made = *new Made;  // destructors of global objects may still run plans
  const std::string key = chain.key();
  const std::lock_guard lock(mutex);
  if (const auto found = made.find(key); found != made.end())
    if (auto code = found->second.lock()) return code;
  try {
    auto code = generated(chain);
    std::erase_if(made, [](const auto& entry) { return entry.second.expired(); });
    made[key] = code;
    return code;
  } catch (const Xbyak::Error&) {
    return nullptr;  // the system allows no generated code
  }
}

}  // namespace reel
