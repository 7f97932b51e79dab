#include "app/run.h"

int main(int argc, char** argv) {
  return tau::app::run({argv + (argc > 0 ? 1 : 0), argv + argc});
}
