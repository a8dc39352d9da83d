#include "model/model.hpp"

#include "model/families.hpp"

namespace kozero {

template <class T>
Model<T>::Model(ModelConfig const& config, std::int64_t batch, Recompute recompute, Purpose purpose, Ledger& ledger)
    : Model(*architecture_of(config), {batch, recompute, purpose}, ledger) {}

template <class T>
Model<T>::Model(Architecture const& architecture, BuildOptions const& options, Ledger& ledger)
    : layout_(architecture.layout()), uses_(architecture.uses()),
      list_(architecture.units<T>(layout_, options, ledger)) {}

template class Model<float>;
template class Model<bf16>;
template class Model<fp16>;

} // namespace kozero
