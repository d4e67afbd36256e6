// The smallest program: a tensor is printed.
#include <reel/reel.h>

#include <iostream>

int main() { std::cout << reel::tensor({1., 2.}) + 1 << '\n'; }
