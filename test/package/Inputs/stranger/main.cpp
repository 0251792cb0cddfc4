#include <cstdio>
#include <model.h>
#include <vector>

int main(int argc, char **argv)
{
    std::vector<float> losses(3);
    train(&argc, &argv, static_cast<int>(losses.size()), losses.data());
    for (float loss : losses)
        std::printf("%.5f\n", loss);
}
