#include "manual.hpp"

#include <iostream>

#include "link.hpp"

namespace fadelink {
namespace {

// Text as roff prints it: no escapes, no requests, hyphens that can be copied.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) (out += "\\&") += c;
    else out += c;
  }
  return out;
}

void entry(const std::string& name, const std::string& value, const std::string& text) {
  std::cout << ".TP\n\\fB" << roff(name) << "\\fR";
  if (!value.empty()) std::cout << " \\fI" << roff(value) << "\\fR";
  std::cout << "\n" << roff(text) << "\n";
}

}  // namespace

void print_manual(const CLI::App& app) {
  std::cout << ".TH fadelink\\-sim 1\n.SH NAME\nfadelink\\-sim \\- simulated front\\-end boards\n"
            << ".SH SYNOPSIS\n\\fBfadelink\\-sim\\fR \\fB\\-\\-iface\\fR \\fINAME\\fR|\\fB\\-\\-virtual\\fR [\\fIOPTIONS\\fR]\n"
            << ".SH DESCRIPTION\n" << roff(kPurpose) << "\n.SH OPTIONS\n";
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) entry(option->get_name(false, true), option->get_type_size() > 0 ? option->get_type_name() : "", option->get_description());
  std::cout << ".SH LINK SETTINGS\nThe values of \\fB\\-\\-link\\fR, \\fB\\-\\-up\\fR, \\fB\\-\\-down\\fR and \\fB\\-\\-switch\\fR are "
               "lists of NAME=VALUE, with commas between them.\n";
  for (const auto& s : LinkSettings::descriptions()) entry(s.name, s.unit, s.meaning + " (default " + s.fallback + ")");
  std::cout << ".SH EXIT STATUS\n";
  entry("0", "", "done; with --virtual, all data is complete");
  entry("1", "", "failed; with --virtual, data is not complete or wrong, with --ptp-pair, the slave is not locked");
  entry("2", "", "wrong arguments");
  std::cout << ".SH FILES\n";
  entry("/dev/net/tun", "", "makes the interface of --create-tap");
  std::cout << ".SH EXAMPLES\n.nf\n" << roff(kExample) << ".fi\n"
            << ".SH SEE ALSO\n\\fBfadelink\\fR(1), \\fBfadelink\\-receive\\fR(1), \\fBfadelink\\-demo\\fR(1)\n";
}

}  // namespace fadelink
