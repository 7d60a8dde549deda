//! The functions of MPI that communicate, wait, or take time otherwise, as regions. Those that only say
//! what the library knows already (ranks, sizes, handles, types) pass by.

use std::ffi::{c_char, c_int, c_void};

use mpi_sys::{
    MPI_Aint, MPI_Comm, MPI_Datatype, MPI_File, MPI_Group, MPI_Info, MPI_Message, MPI_Offset, MPI_Op,
    MPI_Request, MPI_Status, MPI_Win,
};

use super::call::{calls, counted, list, message, sent, size};
use super::collectives::*;
use super::communicators::{begin_collective, begun, freed, made};
use super::requests::{access, free, free_window, probed, receive, send_init, start, window};
use crate::profile::MessageKind;

// Messages between two ranks.
counted! {
    mod messages;
    fn MPI_Send(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
    ) after {
        sent(comm, dest, count, datatype);
    }
    fn MPI_Bsend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
    ) after {
        sent(comm, dest, count, datatype);
    }
    fn MPI_Ssend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
    ) after {
        sent(comm, dest, count, datatype);
    }
    fn MPI_Rsend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
    ) after {
        sent(comm, dest, count, datatype);
    }
    fn MPI_Isend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) after {
        sent(comm, dest, count, datatype);
    }
    fn MPI_Ibsend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) after {
        sent(comm, dest, count, datatype);
    }
    fn MPI_Issend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) after {
        sent(comm, dest, count, datatype);
    }
    fn MPI_Irsend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) after {
        sent(comm, dest, count, datatype);
    }
    fn MPI_Irecv(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) after {
        receive(request, source, comm, false);
    }
    fn MPI_Send_init(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) after {
        send_init(request, comm, dest, count, datatype);
    }
    fn MPI_Bsend_init(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) after {
        send_init(request, comm, dest, count, datatype);
    }
    fn MPI_Ssend_init(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) after {
        send_init(request, comm, dest, count, datatype);
    }
    fn MPI_Rsend_init(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) after {
        send_init(request, comm, dest, count, datatype);
    }
    fn MPI_Recv_init(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) after {
        receive(request, source, comm, true);
    }
    fn MPI_Buffer_attach(buffer: *mut c_void, size: Count) only {}
    fn MPI_Buffer_detach(buffer: *mut c_void, size: *mut Count) only {}
}
calls! {
    static MESSAGES;
    fn MPI_Start(request: *mut MPI_Request) before { start(*request); }
    fn MPI_Startall(count: c_int, array_of_requests: *mut MPI_Request) before {
        list(array_of_requests, count).iter().for_each(|&request| start(request));
    }
    fn MPI_Request_free(request: *mut MPI_Request) before { free(request); }
    fn MPI_Cancel(request: *mut MPI_Request) only {}
    fn MPI_Probe(source: c_int, tag: c_int, comm: MPI_Comm, status: *mut MPI_Status) only {}
    fn MPI_Iprobe(source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int, status: *mut MPI_Status) only {}
    fn MPI_Mprobe(
        source: c_int, tag: c_int, comm: MPI_Comm, message: *mut MPI_Message, status: *mut MPI_Status,
    ) after {
        probed(message, comm);
    }
    fn MPI_Improbe(
        source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int, message: *mut MPI_Message,
        status: *mut MPI_Status,
    ) after {
        if *flag != 0 { probed(message, comm) };
    }
}

// Collective operations: what a rank hands in, or takes where there is a single source.
counted! {
    mod collectives;
    fn MPI_Bcast(
        buffer: *mut c_void, count: Count, datatype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) collective {
        comm;
        with_root(comm, root, size(count, datatype));
    }
    fn MPI_Ibcast(
        buffer: *mut c_void, count: Count, datatype: MPI_Datatype, root: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) begins {
        comm;
        with_root(comm, root, size(count, datatype));
    }
    fn MPI_Reduce(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        root: c_int, comm: MPI_Comm,
    ) collective {
        comm;
        with_root(comm, root, size(count, datatype));
    }
    fn MPI_Ireduce(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        root: c_int, comm: MPI_Comm, request: *mut MPI_Request,
    ) begins {
        comm;
        with_root(comm, root, size(count, datatype));
    }
    fn MPI_Allreduce(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm,
    ) collective {
        comm;
        shared(comm, size(count, datatype));
    }
    fn MPI_Iallreduce(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) begins {
        comm;
        shared(comm, size(count, datatype));
    }
    fn MPI_Scan(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm,
    ) collective {
        comm;
        shared(comm, size(count, datatype));
    }
    fn MPI_Iscan(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) begins {
        comm;
        shared(comm, size(count, datatype));
    }
    fn MPI_Exscan(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm,
    ) collective {
        comm;
        shared(comm, size(count, datatype));
    }
    fn MPI_Iexscan(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) begins {
        comm;
        shared(comm, size(count, datatype));
    }
    fn MPI_Gather(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) collective {
        comm;
        gathered(comm, root, (sendbuf, sendcount, sendtype), (recvcount, recvtype));
    }
    fn MPI_Igather(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, request: *mut MPI_Request,
    ) begins {
        comm;
        gathered(comm, root, (sendbuf, sendcount, sendtype), (recvcount, recvtype));
    }
    fn MPI_Gatherv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: *const Count, displs: *const Displacement, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) collective {
        comm;
        gathered(comm, root, (sendbuf, sendcount, sendtype), own_part(comm, sendbuf, recvcounts, recvtype));
    }
    fn MPI_Igatherv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: *const Count, displs: *const Displacement, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) begins {
        comm;
        gathered(comm, root, (sendbuf, sendcount, sendtype), own_part(comm, sendbuf, recvcounts, recvtype));
    }
    fn MPI_Scatter(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) collective {
        comm;
        scattered(comm, root, (sendcount, sendtype), (recvbuf, recvcount, recvtype));
    }
    fn MPI_Iscatter(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, request: *mut MPI_Request,
    ) begins {
        comm;
        scattered(comm, root, (sendcount, sendtype), (recvbuf, recvcount, recvtype));
    }
    fn MPI_Scatterv(
        sendbuf: *const c_void, sendcounts: *const Count, displs: *const Displacement, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) collective {
        comm;
        scattered(comm, root, own_part(comm, recvbuf, sendcounts, sendtype), (recvbuf, recvcount, recvtype));
    }
    fn MPI_Iscatterv(
        sendbuf: *const c_void, sendcounts: *const Count, displs: *const Displacement, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) begins {
        comm;
        scattered(comm, root, own_part(comm, recvbuf, sendcounts, sendtype), (recvbuf, recvcount, recvtype));
    }
    fn MPI_Allgather(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) collective {
        comm;
        handed_in(comm, (sendbuf, sendcount, sendtype), (recvcount, recvtype), 1);
    }
    fn MPI_Iallgather(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request,
    ) begins {
        comm;
        handed_in(comm, (sendbuf, sendcount, sendtype), (recvcount, recvtype), 1);
    }
    fn MPI_Allgatherv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: *const Count, displs: *const Displacement, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) collective {
        comm;
        handed_in(comm, (sendbuf, sendcount, sendtype), own_part(comm, sendbuf, recvcounts, recvtype), 1);
    }
    fn MPI_Iallgatherv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: *const Count, displs: *const Displacement, recvtype: MPI_Datatype, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) begins {
        comm;
        handed_in(comm, (sendbuf, sendcount, sendtype), own_part(comm, sendbuf, recvcounts, recvtype), 1);
    }
    fn MPI_Alltoall(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) collective {
        comm;
        handed_in(comm, (sendbuf, sendcount, sendtype), (recvcount, recvtype), others(comm));
    }
    fn MPI_Ialltoall(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request,
    ) begins {
        comm;
        handed_in(comm, (sendbuf, sendcount, sendtype), (recvcount, recvtype), others(comm));
    }
    fn MPI_Alltoallv(
        sendbuf: *const c_void, sendcounts: *const Count, sdispls: *const Displacement, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: *const Count, rdispls: *const Displacement, recvtype: MPI_Datatype,
        comm: MPI_Comm,
    ) collective {
        comm;
        handed_in_parts(comm, (sendbuf, sendcounts, sendtype), (recvcounts, recvtype));
    }
    fn MPI_Ialltoallv(
        sendbuf: *const c_void, sendcounts: *const Count, sdispls: *const Displacement, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: *const Count, rdispls: *const Displacement, recvtype: MPI_Datatype,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) begins {
        comm;
        handed_in_parts(comm, (sendbuf, sendcounts, sendtype), (recvcounts, recvtype));
    }
    fn MPI_Alltoallw(
        sendbuf: *const c_void, sendcounts: *const Count, sdispls: *const Displacement,
        sendtypes: *const MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const Count,
        rdispls: *const Displacement, recvtypes: *const MPI_Datatype, comm: MPI_Comm,
    ) collective {
        comm;
        handed_in_types(comm, (sendbuf, sendcounts, sendtypes), (recvcounts, recvtypes));
    }
    fn MPI_Ialltoallw(
        sendbuf: *const c_void, sendcounts: *const Count, sdispls: *const Displacement,
        sendtypes: *const MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const Count,
        rdispls: *const Displacement, recvtypes: *const MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request,
    ) begins {
        comm;
        handed_in_types(comm, (sendbuf, sendcounts, sendtypes), (recvcounts, recvtypes));
    }
    fn MPI_Reduce_scatter(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: *const Count, datatype: MPI_Datatype,
        op: MPI_Op, comm: MPI_Comm,
    ) collective {
        comm;
        shared(comm, sum_of(recvcounts, datatype, others(comm)));
    }
    fn MPI_Ireduce_scatter(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: *const Count, datatype: MPI_Datatype,
        op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request,
    ) begins {
        comm;
        shared(comm, sum_of(recvcounts, datatype, others(comm)));
    }
    fn MPI_Reduce_scatter_block(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm,
    ) collective {
        comm;
        shared(comm, size(recvcount, datatype) * others(comm) as u64);
    }
    fn MPI_Ireduce_scatter_block(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) begins {
        comm;
        shared(comm, size(recvcount, datatype) * others(comm) as u64);
    }
}
calls! {
    static COLLECTIVES;
    fn MPI_Barrier(comm: MPI_Comm) collective { comm;  }
    fn MPI_Ibarrier(comm: MPI_Comm, request: *mut MPI_Request) begins { comm; }
}

// Collective operations between neighbours, which do not wait for all.
counted! {
    mod neighbours;
    fn MPI_Neighbor_allgather(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) before {
        shared(comm, size(sendcount, sendtype));
    }
    fn MPI_Ineighbor_allgather(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request,
    ) before {
        shared(comm, size(sendcount, sendtype));
    }
    fn MPI_Neighbor_allgatherv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: *const Count, displs: *const Displacement, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) before {
        shared(comm, size(sendcount, sendtype));
    }
    fn MPI_Ineighbor_allgatherv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: *const Count, displs: *const Displacement, recvtype: MPI_Datatype, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) before {
        shared(comm, size(sendcount, sendtype));
    }
    fn MPI_Neighbor_alltoall(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) before {
        shared(comm, size(sendcount, sendtype) * neighbours(comm) as u64);
    }
    fn MPI_Ineighbor_alltoall(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request,
    ) before {
        shared(comm, size(sendcount, sendtype) * neighbours(comm) as u64);
    }
    fn MPI_Neighbor_alltoallv(
        sendbuf: *const c_void, sendcounts: *const Count, sdispls: *const Displacement, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: *const Count, rdispls: *const Displacement, recvtype: MPI_Datatype,
        comm: MPI_Comm,
    ) before {
        shared(comm, sum_of(sendcounts, sendtype, neighbours(comm)));
    }
    fn MPI_Ineighbor_alltoallv(
        sendbuf: *const c_void, sendcounts: *const Count, sdispls: *const Displacement, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: *const Count, rdispls: *const Displacement, recvtype: MPI_Datatype,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) before {
        shared(comm, sum_of(sendcounts, sendtype, neighbours(comm)));
    }
    fn MPI_Neighbor_alltoallw(
        sendbuf: *const c_void, sendcounts: *const Count, sdispls: *const MPI_Aint,
        sendtypes: *const MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const Count,
        rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype, comm: MPI_Comm,
    ) before {
        shared(comm, sum_of_types(sendcounts, sendtypes, neighbours(comm)));
    }
    fn MPI_Ineighbor_alltoallw(
        sendbuf: *const c_void, sendcounts: *const Count, sdispls: *const MPI_Aint,
        sendtypes: *const MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const Count,
        rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request,
    ) before {
        shared(comm, sum_of_types(sendcounts, sendtypes, neighbours(comm)));
    }
}

// Communicators, and other jobs.
calls! {
    static COMMUNICATORS;
    fn MPI_Comm_dup(comm: MPI_Comm, newcomm: *mut MPI_Comm) after { made(newcomm); }
    fn MPI_Comm_dup_with_info(comm: MPI_Comm, info: MPI_Info, newcomm: *mut MPI_Comm) after { made(newcomm); }
    fn MPI_Comm_idup(comm: MPI_Comm, newcomm: *mut MPI_Comm, request: *mut MPI_Request) after {
        begun(newcomm, comm);
    }
    fn MPI_Comm_create(comm: MPI_Comm, group: MPI_Group, newcomm: *mut MPI_Comm) after { made(newcomm); }
    fn MPI_Comm_create_group(comm: MPI_Comm, group: MPI_Group, tag: c_int, newcomm: *mut MPI_Comm) after {
        made(newcomm);
    }
    fn MPI_Comm_split(comm: MPI_Comm, color: c_int, key: c_int, newcomm: *mut MPI_Comm) after {
        made(newcomm);
    }
    fn MPI_Comm_split_type(
        comm: MPI_Comm, split_type: c_int, key: c_int, info: MPI_Info, newcomm: *mut MPI_Comm,
    ) after {
        made(newcomm);
    }
    fn MPI_Intercomm_create(
        local_comm: MPI_Comm, local_leader: c_int, bridge_comm: MPI_Comm, remote_leader: c_int, tag: c_int,
        newintercomm: *mut MPI_Comm,
    ) after {
        made(newintercomm);
    }
    fn MPI_Intercomm_merge(intercomm: MPI_Comm, high: c_int, newintercomm: *mut MPI_Comm) after {
        made(newintercomm);
    }
    fn MPI_Cart_create(
        old_comm: MPI_Comm, ndims: c_int, dims: *const c_int, periods: *const c_int, reorder: c_int,
        comm_cart: *mut MPI_Comm,
    ) after {
        made(comm_cart);
    }
    fn MPI_Cart_sub(comm: MPI_Comm, remain_dims: *const c_int, new_comm: *mut MPI_Comm) after {
        made(new_comm);
    }
    fn MPI_Graph_create(
        comm_old: MPI_Comm, nnodes: c_int, index: *const c_int, edges: *const c_int, reorder: c_int,
        comm_graph: *mut MPI_Comm,
    ) after {
        made(comm_graph);
    }
    fn MPI_Dist_graph_create(
        comm_old: MPI_Comm, n: c_int, nodes: *const c_int, degrees: *const c_int, targets: *const c_int,
        weights: *const c_int, info: MPI_Info, reorder: c_int, newcomm: *mut MPI_Comm,
    ) after {
        made(newcomm);
    }
    fn MPI_Dist_graph_create_adjacent(
        comm_old: MPI_Comm, indegree: c_int, sources: *const c_int, sourceweights: *const c_int,
        outdegree: c_int, destinations: *const c_int, destweights: *const c_int, info: MPI_Info,
        reorder: c_int, comm_dist_graph: *mut MPI_Comm,
    ) after {
        made(comm_dist_graph);
    }
    fn MPI_Comm_free(comm: *mut MPI_Comm) before { freed(comm); }
    fn MPI_Comm_disconnect(comm: *mut MPI_Comm) before { freed(comm); }
    fn MPI_Comm_spawn(
        command: *const c_char, argv: *mut *mut c_char, maxprocs: c_int, info: MPI_Info, root: c_int,
        comm: MPI_Comm, intercomm: *mut MPI_Comm, array_of_errcodes: *mut c_int,
    ) only {}
    fn MPI_Comm_spawn_multiple(
        count: c_int, array_of_commands: *mut *mut c_char, array_of_argv: *mut *mut *mut c_char,
        array_of_maxprocs: *const c_int, array_of_info: *const MPI_Info, root: c_int, comm: MPI_Comm,
        intercomm: *mut MPI_Comm, array_of_errcodes: *mut c_int,
    ) only {}
    fn MPI_Comm_accept(
        port_name: *const c_char, info: MPI_Info, root: c_int, comm: MPI_Comm, newcomm: *mut MPI_Comm,
    ) only {}
    fn MPI_Comm_connect(
        port_name: *const c_char, info: MPI_Info, root: c_int, comm: MPI_Comm, newcomm: *mut MPI_Comm,
    ) only {}
    fn MPI_Comm_join(fd: c_int, intercomm: *mut MPI_Comm) only {}
    fn MPI_Open_port(info: MPI_Info, port_name: *mut c_char) only {}
    fn MPI_Close_port(port_name: *const c_char) only {}
    fn MPI_Publish_name(service_name: *const c_char, info: MPI_Info, port_name: *const c_char) only {}
    fn MPI_Unpublish_name(service_name: *const c_char, info: MPI_Info, port_name: *const c_char) only {}
    fn MPI_Lookup_name(service_name: *const c_char, info: MPI_Info, port_name: *mut c_char) only {}
}

// Memory of other ranks.
counted! {
    mod windows;
    fn MPI_Win_create(
        base: *mut c_void, size: MPI_Aint, disp_unit: Displacement, info: MPI_Info, comm: MPI_Comm,
        win: *mut MPI_Win,
    ) after {
        window(win, comm);
    }
    fn MPI_Win_allocate(
        size: MPI_Aint, disp_unit: Displacement, info: MPI_Info, comm: MPI_Comm, baseptr: *mut c_void,
        win: *mut MPI_Win,
    ) after {
        window(win, comm);
    }
    fn MPI_Win_allocate_shared(
        size: MPI_Aint, disp_unit: Displacement, info: MPI_Info, comm: MPI_Comm, baseptr: *mut c_void,
        win: *mut MPI_Win,
    ) after {
        window(win, comm);
    }
    fn MPI_Put(
        origin_addr: *const c_void, origin_count: Count, origin_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, win: MPI_Win,
    ) before {
        access(MessageKind::Sent, win, target_rank, size(origin_count, origin_datatype));
    }
    fn MPI_Rput(
        origin_addr: *const c_void, origin_count: Count, origin_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) before {
        access(MessageKind::Sent, win, target_rank, size(origin_count, origin_datatype));
    }
    fn MPI_Accumulate(
        origin_addr: *const c_void, origin_count: Count, origin_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    ) before {
        access(MessageKind::Sent, win, target_rank, size(origin_count, origin_datatype));
    }
    fn MPI_Raccumulate(
        origin_addr: *const c_void, origin_count: Count, origin_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
        request: *mut MPI_Request,
    ) before {
        access(MessageKind::Sent, win, target_rank, size(origin_count, origin_datatype));
    }
    fn MPI_Get(
        origin_addr: *mut c_void, origin_count: Count, origin_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, win: MPI_Win,
    ) before {
        access(MessageKind::Received, win, target_rank, size(target_count, target_datatype));
    }
    fn MPI_Rget(
        origin_addr: *mut c_void, origin_count: Count, origin_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) before {
        access(MessageKind::Received, win, target_rank, size(target_count, target_datatype));
    }
    fn MPI_Get_accumulate(
        origin_addr: *const c_void, origin_count: Count, origin_datatype: MPI_Datatype,
        result_addr: *mut c_void, result_count: Count, result_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    ) before {
        access(MessageKind::Sent, win, target_rank, size(origin_count, origin_datatype));
        access(MessageKind::Received, win, target_rank, size(result_count, result_datatype));
    }
    fn MPI_Rget_accumulate(
        origin_addr: *const c_void, origin_count: Count, origin_datatype: MPI_Datatype,
        result_addr: *mut c_void, result_count: Count, result_datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, target_count: Count, target_datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
        request: *mut MPI_Request,
    ) before {
        access(MessageKind::Sent, win, target_rank, size(origin_count, origin_datatype));
        access(MessageKind::Received, win, target_rank, size(result_count, result_datatype));
    }
}
calls! {
    static WINDOWS;
    fn MPI_Win_create_dynamic(info: MPI_Info, comm: MPI_Comm, win: *mut MPI_Win) after { window(win, comm); }
    fn MPI_Win_free(win: *mut MPI_Win) before { free_window(win); }
    fn MPI_Win_attach(win: MPI_Win, base: *mut c_void, size: MPI_Aint) only {}
    fn MPI_Win_detach(win: MPI_Win, base: *const c_void) only {}
    fn MPI_Win_fence(assert: c_int, win: MPI_Win) only {}
    fn MPI_Win_start(group: MPI_Group, assert: c_int, win: MPI_Win) only {}
    fn MPI_Win_complete(win: MPI_Win) only {}
    fn MPI_Win_post(group: MPI_Group, assert: c_int, win: MPI_Win) only {}
    fn MPI_Win_wait(win: MPI_Win) only {}
    fn MPI_Win_test(win: MPI_Win, flag: *mut c_int) only {}
    fn MPI_Win_lock(lock_type: c_int, rank: c_int, assert: c_int, win: MPI_Win) only {}
    fn MPI_Win_lock_all(assert: c_int, win: MPI_Win) only {}
    fn MPI_Win_unlock(rank: c_int, win: MPI_Win) only {}
    fn MPI_Win_unlock_all(win: MPI_Win) only {}
    fn MPI_Win_flush(rank: c_int, win: MPI_Win) only {}
    fn MPI_Win_flush_all(win: MPI_Win) only {}
    fn MPI_Win_flush_local(rank: c_int, win: MPI_Win) only {}
    fn MPI_Win_flush_local_all(win: MPI_Win) only {}
    fn MPI_Win_sync(win: MPI_Win) only {}
    fn MPI_Fetch_and_op(
        origin_addr: *const c_void, result_addr: *mut c_void, datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, op: MPI_Op, win: MPI_Win,
    ) before {
        access(MessageKind::Sent, win, target_rank, size(1, datatype));
        access(MessageKind::Received, win, target_rank, size(1, datatype));
    }
    fn MPI_Compare_and_swap(
        origin_addr: *const c_void, compare_addr: *const c_void, result_addr: *mut c_void,
        datatype: MPI_Datatype, target_rank: c_int, target_disp: MPI_Aint, win: MPI_Win,
    ) before {
        access(MessageKind::Sent, win, target_rank, size(1, datatype));
        access(MessageKind::Received, win, target_rank, size(1, datatype));
    }
}

// Files: what was asked for.
counted! {
    mod files;
    fn MPI_File_read(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_read_all(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_read_at(
        fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: Count, datatype: MPI_Datatype,
        status: *mut MPI_Status,
    ) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_read_at_all(
        fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: Count, datatype: MPI_Datatype,
        status: *mut MPI_Status,
    ) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_read_shared(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_read_ordered(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_read_all_begin(fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_read_at_all_begin(
        fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: Count, datatype: MPI_Datatype,
    ) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_read_ordered_begin(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype,
    ) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_iread(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, request: *mut MPI_Request,
    ) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_iread_at(
        fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: Count, datatype: MPI_Datatype,
        request: *mut MPI_Request,
    ) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_iread_all(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, request: *mut MPI_Request,
    ) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_iread_at_all(
        fh: MPI_File, offset: MPI_Offset, buf: *mut c_void, count: Count, datatype: MPI_Datatype,
        request: *mut MPI_Request,
    ) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_iread_shared(
        fh: MPI_File, buf: *mut c_void, count: Count, datatype: MPI_Datatype, request: *mut MPI_Request,
    ) before {
        message(MessageKind::Read, None, size(count, datatype));
    }
    fn MPI_File_write(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
    fn MPI_File_write_all(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
    fn MPI_File_write_at(
        fh: MPI_File, offset: MPI_Offset, buf: *const c_void, count: Count, datatype: MPI_Datatype,
        status: *mut MPI_Status,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
    fn MPI_File_write_at_all(
        fh: MPI_File, offset: MPI_Offset, buf: *const c_void, count: Count, datatype: MPI_Datatype,
        status: *mut MPI_Status,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
    fn MPI_File_write_shared(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
    fn MPI_File_write_ordered(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, status: *mut MPI_Status,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
    fn MPI_File_write_all_begin(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
    fn MPI_File_write_at_all_begin(
        fh: MPI_File, offset: MPI_Offset, buf: *const c_void, count: Count, datatype: MPI_Datatype,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
    fn MPI_File_write_ordered_begin(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
    fn MPI_File_iwrite(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, request: *mut MPI_Request,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
    fn MPI_File_iwrite_at(
        fh: MPI_File, offset: MPI_Offset, buf: *const c_void, count: Count, datatype: MPI_Datatype,
        request: *mut MPI_Request,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
    fn MPI_File_iwrite_all(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, request: *mut MPI_Request,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
    fn MPI_File_iwrite_at_all(
        fh: MPI_File, offset: MPI_Offset, buf: *const c_void, count: Count, datatype: MPI_Datatype,
        request: *mut MPI_Request,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
    fn MPI_File_iwrite_shared(
        fh: MPI_File, buf: *const c_void, count: Count, datatype: MPI_Datatype, request: *mut MPI_Request,
    ) before {
        message(MessageKind::Written, None, size(count, datatype));
    }
}
calls! {
    static FILES;
    fn MPI_File_open(
        comm: MPI_Comm, filename: *const c_char, amode: c_int, info: MPI_Info, fh: *mut MPI_File,
    ) only {}
    fn MPI_File_close(fh: *mut MPI_File) only {}
    fn MPI_File_delete(filename: *const c_char, info: MPI_Info) only {}
    fn MPI_File_set_size(fh: MPI_File, size: MPI_Offset) only {}
    fn MPI_File_preallocate(fh: MPI_File, size: MPI_Offset) only {}
    fn MPI_File_get_size(fh: MPI_File, size: *mut MPI_Offset) only {}
    fn MPI_File_set_view(
        fh: MPI_File, disp: MPI_Offset, etype: MPI_Datatype, filetype: MPI_Datatype, datarep: *const c_char,
        info: MPI_Info,
    ) only {}
    fn MPI_File_set_atomicity(fh: MPI_File, flag: c_int) only {}
    fn MPI_File_sync(fh: MPI_File) only {}
    fn MPI_File_seek(fh: MPI_File, offset: MPI_Offset, whence: c_int) only {}
    fn MPI_File_seek_shared(fh: MPI_File, offset: MPI_Offset, whence: c_int) only {}
    fn MPI_File_read_all_end(fh: MPI_File, buf: *mut c_void, status: *mut MPI_Status) only {}
    fn MPI_File_read_at_all_end(fh: MPI_File, buf: *mut c_void, status: *mut MPI_Status) only {}
    fn MPI_File_read_ordered_end(fh: MPI_File, buf: *mut c_void, status: *mut MPI_Status) only {}
    fn MPI_File_write_all_end(fh: MPI_File, buf: *const c_void, status: *mut MPI_Status) only {}
    fn MPI_File_write_at_all_end(fh: MPI_File, buf: *const c_void, status: *mut MPI_Status) only {}
    fn MPI_File_write_ordered_end(fh: MPI_File, buf: *const c_void, status: *mut MPI_Status) only {}
}

// What else takes time.
counted! {
    mod others;
    fn MPI_Pack(
        inbuf: *const c_void, incount: Count, datatype: MPI_Datatype, outbuf: *mut c_void, outsize: Count,
        position: *mut Count, comm: MPI_Comm,
    ) only {}
    fn MPI_Unpack(
        inbuf: *const c_void, insize: Count, position: *mut Count, outbuf: *mut c_void, outcount: Count,
        datatype: MPI_Datatype, comm: MPI_Comm,
    ) only {}
    fn MPI_Pack_external(
        datarep: *const c_char, inbuf: *const c_void, incount: Count, datatype: MPI_Datatype,
        outbuf: *mut c_void, outsize: Size, position: *mut Size,
    ) only {}
    fn MPI_Unpack_external(
        datarep: *const c_char, inbuf: *const c_void, insize: Size, position: *mut Size,
        outbuf: *mut c_void, outcount: Count, datatype: MPI_Datatype,
    ) only {}
    fn MPI_Reduce_local(
        inbuf: *const c_void, inoutbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
    ) only {}
}
calls! {
    static OTHERS;
    fn MPI_Abort(comm: MPI_Comm, code: c_int) only {}
    fn MPI_Alloc_mem(size: MPI_Aint, info: MPI_Info, baseptr: *mut c_void) only {}
    fn MPI_Free_mem(base: *mut c_void) only {}
    fn MPI_Type_commit(datatype: *mut MPI_Datatype) only {}
}
