// After C headers of Linux, whose macros and functions have short names: I, major, minor, unix, linux, B0,
// index.
#include <arpa/inet.h>
#include <assert.h>
#include <complex.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <float.h>
#include <libgen.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <syslog.h>
#include <termios.h>
#include <unistd.h>

#include <fprnn/fprnn.hpp>

#include <cstdio>

namespace fp = fprnn;

namespace {

using fp::index;  // not in the global namespace, which has a function of that name

index width() { return 37; }

}  // namespace

int main() {
    using namespace fp::symbols;
    auto Q = fp::householder<2, "Q">(cat(in, shift(prev)));
    auto lambda = sigmoid(fp::affine<"lambda">(in));
    auto f = scan(lambda, (1 - lambda) * (Q * fp::linear<"B">(in) + (identity - Q) * prev));
    auto layer = fp::fixed_point(f, fp::chunked{.tolerance = 1e-6});
    auto theta = fp::init<float>(layer, {.d_in = 3, .d_inner = width()}, fp::seed{0});
    std::printf("%d.%d.%d, %td parameters\n", fp::version.major, fp::version.minor, fp::version.patch, theta.size());
}
