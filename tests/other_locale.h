// tests/other_locale.h — OtherLocale, a locale that groups digits and writes a decimal comma.
#pragma once

#include <clocale>
#include <locale>
#include <string>

namespace reel {

/// During its lifetime new C++ streams print 1.234.567,5. printf prints a decimal comma if the
/// system has such a locale.
class OtherLocale {
 public:
  OtherLocale()
      : c_before_(std::setlocale(LC_ALL, nullptr)),
        before_(std::locale::global(std::locale(std::locale::classic(), new Numbers))) {
    // Setting an unnamed C++ locale does not change the C locale.
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"})
      if (std::setlocale(LC_ALL, name)) break;
  }
  ~OtherLocale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, c_before_.c_str());
  }
  OtherLocale(const OtherLocale&) = delete;
  OtherLocale& operator=(const OtherLocale&) = delete;

 private:
  struct Numbers : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
    std::string do_truename() const override { return "wahr"; }
  };

  std::string c_before_;
  std::locale before_;
};

}  // namespace reel
