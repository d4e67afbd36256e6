// core/ops/products/one_thread.h — OneThread, which keeps oneDNN from starting OpenMP's threads.
#pragma once

namespace reel {

/// Limits the OpenMP of this thread, and so oneDNN, to one thread, as long as the object lives.
/// Does nothing if oneDNN was built without OpenMP.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace reel
