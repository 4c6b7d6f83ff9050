/* simgrid.cpp - the adapter to SimGrid 3.32. Measured facts behind the choices are at each of them. */
#include "sim/engine/simgrid.h"

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

namespace s4u = simgrid::s4u;
namespace kernel = simgrid::kernel;

namespace
{

/* As dl_alloc does: SimGrid is full of places where nobody would catch it. */
void end_without_memory()
{
    std::fputs("dlsim: out of memory\n", stderr);
    std::_Exit(3);
}

s4u::Engine *start_engine(const std::vector<std::string> &settings)
{
    static char name[] = "dlsim";
    static char quiet[] = "--log=root.thres:error";
    static char *arguments[] = {name, quiet, nullptr};
    std::set_new_handler(end_without_memory);
    int n_arguments = 2;
    const auto interrupt = std::signal(SIGINT, SIG_DFL);
    auto *const engine = new s4u::Engine(&n_arguments, arguments);
    std::signal(SIGINT, interrupt); /* SimGrid's own would end with 1, which is an answer of dlsim's */
    for (const auto &setting : settings) s4u::Engine::set_config(setting);
    return engine;
}

/* ---- our own model in SimGrid's loop ---- */

/* A round of SimGrid asks each of its models for its next date and for what has ended: that takes as long as one of our
 * instants. Nobody else lives in this world, so nothing can come between instants of ours, and a round may have
 * several. With one each a step of Frontier takes up to 1.8 times as long. */
constexpr int max_instants_a_round = 64;

class Clockwork : public kernel::resource::Model
{
  public:
    explicit Clockwork(const dl_clockwork &clockwork)
        : Model("dlsim"), clockwork_(clockwork), next_s_(clockwork.next_s(clockwork.user))
    {
    }

    double next_occurring_event(double now) override
    {
        return std::isinf(next_s_) ? -1.0 : std::fmax(next_s_ - now, 0.0);
    }

    /* now + (next - now) may differ from next in the last bit, so our date counts, not SimGrid's sum. */
    void update_actions_state(double now, double) override
    {
        if (now < next_s_ * (1 - 1e-15)) return;
        for (int i = 0; i < max_instants_a_round && std::isfinite(next_s_); i++) {
            clockwork_.advance(clockwork_.user);
            next_s_ = clockwork_.next_s(clockwork_.user);
        }
    }

  private:
    dl_clockwork clockwork_;
    double next_s_;
};

/* ---- CM02 over explicit paths ---- */

/* Payload sizes are whole bytes in SimGrid: bytes and bandwidths are scaled so that fractions count too. */
constexpr double scale = 1 << 20;

struct Flow {
    s4u::CommPtr comm;
    s4u::Link *guard = nullptr;
    dl_event_fn done = nullptr;
    void *user = nullptr;
    uint32_t tag = 0;
};

struct Path {
    const uint32_t *links;
    size_t n_links;
    double latency_s;
    s4u::Link *guard;
};

class PathZone;

struct Cm02 {
    s4u::Engine *engine = nullptr;
    PathZone *zone = nullptr;
    s4u::Host *from = nullptr, *to = nullptr;
    std::vector<s4u::Link *> links;
    std::unordered_map<uint32_t, double> changed; /* bandwidth of the links that were given another */
    std::vector<Flow *> idle, ended;
    Path starting = {nullptr, 0, 0.0, nullptr}; /* of the flow that is being started */
} cm02;

class PathZone : public kernel::routing::NetZoneImpl
{
  public:
    explicit PathZone(const std::string &name) : NetZoneImpl(name) {}

    void get_local_route(const kernel::routing::NetPoint *, const kernel::routing::NetPoint *,
                         kernel::routing::Route *into, double *latency) override
    {
        if (cm02.starting.guard) into->link_list_.push_back(cm02.starting.guard->get_impl());
        for (size_t i = 0; i < cm02.starting.n_links; i++)
            into->link_list_.push_back(cm02.links[cm02.starting.links[i]]->get_impl());
        /* SimGrid shares by the inverse of the route's latency: a constant here, the true one by the factor below. */
        if (latency) *latency += 1.0;
    }
};

s4u::Link *create_link(const std::string &name, double bytes_per_s, bool fatpipe)
{
    auto *const link = cm02.zone->get_iface()->create_link(name, bytes_per_s * scale);
    link->set_latency(0.0);
    if (fatpipe) link->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
    return link->seal();
}

constexpr double unlimited = 1e18;
constexpr size_t max_flows = 32768; /* live at once: links cannot be made any more once SimGrid runs */

void make_idle_flows(bool guarded)
{
    for (size_t i = 0; i < max_flows; i++) {
        cm02.idle.push_back(new Flow);
        if (guarded) cm02.idle.back()->guard = create_link("guard" + std::to_string(i), unlimited, false);
    }
}

/* Inside SimGrid's loop there is nobody to hand an error to: as without memory, this ends the program. */
Flow *idle_flow()
{
    if (cm02.idle.empty()) {
        std::fprintf(stderr, "dlsim: --engine: cm02 cannot hold more than %zu messages at once; use simgrid\n",
                     max_flows);
        std::_Exit(2);
    }
    Flow *const flow = cm02.idle.back();
    cm02.idle.pop_back();
    return flow;
}

/* SimGrid never lets a flow run faster than the slowest of its links was when the flow started, even if that link is
 * faster later. So links that were slowed are wide while a flow starts. */
void widen_changed(const uint32_t *links, size_t n_links, bool widen)
{
    for (size_t i = 0; i < n_links && !cm02.changed.empty(); i++) {
        const auto change = cm02.changed.find(links[i]);
        if (change == cm02.changed.end()) continue;
        cm02.links[links[i]]->set_bandwidth(widen ? unlimited * scale : change->second);
    }
}

void on_completion(const s4u::Activity &activity)
{
    auto *const flow = activity.get_data<Flow>();
    if (!flow) return;
    for (Flow *const old : cm02.ended) {
        old->comm = nullptr;
        cm02.idle.push_back(old);
    }
    cm02.ended.assign(1, flow); /* Activity::complete still runs on it, so it must outlive this call */
    if (flow->done) flow->done(flow->user, flow->tag);
}

void drive(const struct dl_clockwork *clockwork)
{
    s4u::Engine *const engine = start_engine({"surf/precision:1e-15"});
    auto *const zone = s4u::create_full_zone("world");
    engine->add_model(std::make_shared<Clockwork>(*clockwork));
    zone->create_host("nobody", 1.0);
    zone->seal();
    engine->run();
}

void cm02_open(const struct dl_engine_link *links, size_t n_links, bool guarded)
{
    cm02.engine = start_engine({"network/model:CM02", "network/TCP-gamma:1e300", "network/crosstraffic:0",
                                "network/loopback-lat:0", "surf/precision:1e-15", "maxmin/precision:1e-9"});
    cm02.zone = new PathZone("world");
    cm02.from = cm02.zone->get_iface()->create_host("from", 1.0)->seal();
    cm02.to = cm02.zone->get_iface()->create_host("to", 1.0)->seal();
    make_idle_flows(guarded);
    for (size_t i = 0; i < n_links; i++)
        cm02.links.push_back(create_link(std::to_string(i), links[i].bandwidth_bytes_per_s, links[i].fatpipe));
    cm02.zone->get_iface()->get_network_model()->set_lat_factor_cb(
        [](double, const s4u::Host *, const s4u::Host *, const std::vector<s4u::Link *> &,
           const std::unordered_set<s4u::NetZone *> &) { return cm02.starting.latency_s; });
    s4u::Activity::on_completion_cb(on_completion);
    cm02.zone->get_iface()->seal();
}

void cm02_timer(double date_s, dl_event_fn fire, void *user, uint32_t tag)
{
    kernel::timer::Timer::set(date_s, [fire, user, tag] {
        if (fire) fire(user, tag);
    });
}

double cm02_now_s(void) { return s4u::Engine::get_clock(); }

void cm02_flow(const uint32_t *links, size_t n_links, const struct dl_bundle *bundle)
{
    if (bundle->bytes <= 0) { /* SimGrid never starts a transfer of nothing */
        cm02_timer(cm02_now_s() + bundle->latency_s, bundle->done, bundle->user, bundle->tag);
        return;
    }
    Flow *const flow = idle_flow();
    flow->done = bundle->done;
    flow->user = bundle->user;
    flow->tag = bundle->tag;
    if (flow->guard) flow->guard->set_bandwidth(std::fmin(bundle->rate_cap_bytes_per_s, unlimited) * scale);
    cm02.starting = {links, n_links, bundle->latency_s, flow->guard};
    flow->comm = s4u::Comm::sendto_init();
    flow->comm->set_data(flow);
    flow->comm->set_payload_size(static_cast<uint64_t>(std::llround(bundle->bytes * scale)));
    flow->comm->set_source(cm02.from);
    widen_changed(links, n_links, true);
    flow->comm->set_destination(cm02.to); /* starts it */
    widen_changed(links, n_links, false);
}

void cm02_set_bandwidth(uint32_t link, double bytes_per_s)
{
    constexpr double as_good_as_none = 1e-12; /* SimGrid takes no zero */
    cm02.changed[link] = std::fmax(bytes_per_s, as_good_as_none) * scale;
    cm02.links[link]->set_bandwidth(cm02.changed[link]);
}

double cm02_used(uint32_t link) { return cm02.links[link]->get_usage() / scale; }

void cm02_run(void) { cm02.engine->run(); }

} // namespace

extern "C" const struct dl_adapter dl_simgrid_adapter = {
    /* drive: */ drive,
    /* cm02_open: */ cm02_open,
    /* cm02_flow: */ cm02_flow,
    /* cm02_timer: */ cm02_timer,
    /* cm02_set_bandwidth: */ cm02_set_bandwidth,
    /* cm02_used: */ cm02_used,
    /* cm02_now_s: */ cm02_now_s,
    /* cm02_run: */ cm02_run,
};
